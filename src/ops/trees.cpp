#include "ops/trees.h"

namespace millrace::ops {

Trees trees_of(const Array& column, const Array& threshold, const Array& left, const Array& missing,
               const Array& root, int64_t columns) {
  return {column.as<int32_t>().data(),
          threshold.as<float>().data(),
          left.as<int32_t>().data(),
          missing.as<uint8_t>().data(),
          root.as<int32_t>().data(),
          column.count(),
          root.count(),
          columns};
}

namespace {

/// TreeEnsembleRegressor's lists: a line for each node of each tree.
struct OnnxTrees {
  std::vector<int64_t> tree, node, column, left, right, missing_left, target_tree, target_node, target;
  std::vector<float> threshold, weight;
  std::vector<std::string> mode;

  void add(const Trees& trees, int64_t t, int64_t width) {
    std::vector<int64_t> open = {trees.root[t]};
    while (!open.empty()) {
      const int64_t at = open.back();
      open.pop_back();
      const bool leaf = trees.is_leaf(at);
      tree.push_back(t);
      node.push_back(at);
      mode.emplace_back(leaf ? "LEAF" : "BRANCH_LT");
      column.push_back(leaf ? 0 : trees.column[at]);
      threshold.push_back(leaf ? 0 : trees.threshold[at]);
      left.push_back(leaf ? 0 : trees.left[at]);
      right.push_back(leaf ? 0 : trees.left[at] + 1);
      missing_left.push_back(!leaf && trees.missing[at] ? 1 : 0);
      if (!leaf) {
        open.push_back(trees.left[at] + 1);
        open.push_back(trees.left[at]);
        continue;
      }
      target_tree.push_back(t);
      target_node.push_back(at);
      target.push_back(t % width);
      weight.push_back(trees.threshold[at]);
    }
  }
};

}  // namespace

std::vector<std::string> trees_as_onnx(const OnnxCall& call) {
  for (size_t i = 1; i < call.operands.size(); ++i)
    if (!call.values[i]) return {};
  const auto& v = call.values;
  const Trees trees = trees_of(*v[1], *v[2], *v[3], *v[4], *v[5], call.types[0].shape[1].size());
  const int64_t width = v[6]->count();
  OnnxTrees lists;
  for (int64_t t = 0; t < trees.trees; ++t)
    if (trees.root[t] >= 0 && trees.root[t] < trees.nodes) lists.add(trees, t, width);
  const auto base = v[6]->as<float>();
  return call.one("ai.onnx.ml.TreeEnsembleRegressor", {call.operands[0]},
                  {{"n_targets", width},
                   {"aggregate_function", std::string("SUM")},
                   {"post_transform", std::string("NONE")},
                   {"base_values", std::vector<float>(base.begin(), base.end())},
                   {"nodes_treeids", lists.tree},
                   {"nodes_nodeids", lists.node},
                   {"nodes_modes", lists.mode},
                   {"nodes_featureids", lists.column},
                   {"nodes_values", lists.threshold},
                   {"nodes_truenodeids", lists.left},
                   {"nodes_falsenodeids", lists.right},
                   {"nodes_missing_value_tracks_true", lists.missing_left},
                   {"target_treeids", lists.target_tree},
                   {"target_nodeids", lists.target_node},
                   {"target_ids", lists.target},
                   {"target_weights", lists.weight}});
}

}  // namespace millrace::ops
