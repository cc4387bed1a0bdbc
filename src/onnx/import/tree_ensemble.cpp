#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

namespace {

enum Branch : int64_t { less_equal, less, greater_equal, greater, equal, not_equal, member };

/// The nodes of all trees; a leaf leads to itself.
struct Forest {
  Ints roots, features, yes, no, modes, missing;  // missing: a NaN takes the branch of yes
  std::vector<double> splits;
  std::vector<std::vector<double>> members;
  std::vector<std::vector<std::pair<int64_t, double>>> weights;  // of leaves: targets and what they get
  int64_t targets = 1;

  int64_t add() {
    const auto at = static_cast<int64_t>(features.size());
    features.push_back(0);
    yes.push_back(at);
    no.push_back(at);
    modes.push_back(less_equal);
    missing.push_back(0);
    splits.push_back(0);
    members.emplace_back();
    weights.emplace_back();
    return at;
  }
};

/// How many steps lead from the roots to the leaves; a tree that does not end is refused.
int64_t depth_of(onnx::ImportCall& call, const Forest& forest) {
  Ints level = forest.roots;
  const size_t nodes = forest.features.size();
  for (size_t depth = 0;; ++depth) {
    Ints next;
    std::vector<bool> seen(nodes, false);
    for (const int64_t at : level) {
      const auto a = static_cast<size_t>(at);
      for (const int64_t child : {forest.yes[a], forest.no[a]})
        if (child != at && !seen[static_cast<size_t>(child)]) {
          seen[static_cast<size_t>(child)] = true;
          next.push_back(child);
        }
    }
    if (next.empty()) return static_cast<int64_t>(depth);
    if (depth > 512) call.refuse("its trees are more than 512 nodes deep, or go round in circles");
    level = std::move(next);
  }
}

/// The leaf of each row [rows, columns] in each tree, i64 [rows, trees].
Value leaves_of(onnx::ImportCall& call, const Forest& forest, Value x) {
  const int64_t rows = call.b.shape(x)[0].size(), columns = call.b.shape(x)[1].size(),
                trees = static_cast<int64_t>(forest.roots.size()),
                nodes = static_cast<int64_t>(forest.features.size());
  const Shape shape{rows, trees};
  Value at = call.b.broadcast(call.ints_constant(forest.roots), shape);
  const Value flat = call.b.reshape(x, {rows * columns});
  const Value row = call.b.mul(call.places(shape, 0), static_cast<double>(columns));
  const auto of_nodes = [&](Value list) { return call.gather(list, at, 0); };
  const Value features = call.ints_constant(forest.features), yes = call.ints_constant(forest.yes),
              no = call.ints_constant(forest.no), modes = call.ints_constant(forest.modes),
              missing = call.ints_constant(forest.missing);
  const Value splits = call.constant(Array::of(call.b.dtype(x), {nodes}, forest.splits));
  size_t most = 0;
  for (const auto& each : forest.members) most = std::max(most, each.size());
  if (static_cast<int64_t>(most) * nodes > (1 << 26)) call.refuse("its sets have too many members");
  Array sets = Array::full(call.b.dtype(x), {nodes, static_cast<int64_t>(std::max<size_t>(most, 1))},
                           std::numeric_limits<double>::quiet_NaN());
  for (size_t n = 0; n < forest.members.size(); ++n)
    for (size_t i = 0; i < forest.members[n].size(); ++i)
      sets.set(static_cast<int64_t>(n * std::max<size_t>(most, 1) + i), forest.members[n][i]);
  constexpr const char* names[] = {"less_equal", "less", "greater_equal", "greater", "equal", "not_equal"};
  for (int64_t depth = depth_of(call, forest); depth > 0; --depth) {
    const Value value = call.gather(flat, call.b.add(row, of_nodes(features)), 0);
    const Value split = of_nodes(splits), mode = of_nodes(modes);
    Value takes = call.b.broadcast(call.scalar(boolean, 0), shape);
    for (int64_t m = less_equal; m <= member; ++m) {
      if (std::find(forest.modes.begin(), forest.modes.end(), m) == forest.modes.end()) continue;
      Value holds;
      if (m == member) {
        const Shape all{rows, trees, sets.shape()[1]};
        const Value same =
            call.graph.add("equal", {call.gather(call.constant(sets), at, 0),
                                     call.b.broadcast(call.b.reshape(value, {rows, trees, 1}), all)});
        holds = call.b.cast(call.b.max(call.b.cast(same, u8), {2}, false), boolean);
      } else {
        holds = call.graph.add(names[m], {value, split});
      }
      takes = call.b.select(call.compare("equal", mode, static_cast<double>(m)), holds, takes);
    }
    takes = call.b.select(call.graph.add("is_nan", {value}), call.compare("not_equal", of_nodes(missing), 0),
                          takes);
    at = call.b.select(takes, of_nodes(yes), of_nodes(no));
  }
  return at;
}

Value transformed_by(onnx::ImportCall& call, Value y, const std::string& transform) {
  if (transform == "NONE") return y;
  if (transform == "SOFTMAX") return call.b.softmax(y, -1);
  if (transform == "LOGISTIC") return call.graph.add("sigmoid", {y});
  call.refuse("the post_transform " + transform + " is not known");
}

Value grown(onnx::ImportCall& call, const Forest& forest, const std::string& aggregate, Value x) {
  const DType dtype = call.b.dtype(x);
  const int64_t nodes = static_cast<int64_t>(forest.features.size());
  if (forest.roots.empty() || forest.targets < 1 || nodes > (1 << 26) / forest.targets)
    call.refuse("its trees are none, or too large");
  for (const int64_t feature : forest.features)
    if (feature < 0 || feature >= call.b.shape(x)[1].size())
      call.refuse("its trees look at columns that are not there");
  Array gives(dtype, {nodes, forest.targets});
  for (int64_t n = 0; n < nodes; ++n)
    for (const auto& [target, weight] : forest.weights[static_cast<size_t>(n)]) {
      if (target < 0 || target >= forest.targets) call.refuse("its leaves have targets that are not there");
      gives.set(n * forest.targets + target, gives.at(n * forest.targets + target) + weight);
    }
  const Value table = call.constant(gives);
  const Value each = call.gather(table, leaves_of(call, forest, x), 0);
  if (aggregate == "SUM") return call.b.sum(each, {1}, false);
  if (aggregate == "AVERAGE") return call.b.mean(each, {1}, false);
  if (aggregate == "MAX") return call.b.max(each, {1}, false);
  if (aggregate == "MIN") return call.graph.add("min", {each}, {{"axes", Ints{1}}});
  call.refuse("the aggregate_function " + aggregate + " is not known");
}

std::vector<double> numbers_of(onnx::ImportCall& call, std::string_view name) {
  const onnx::AttributeProto& attribute = call.attribute(name);
  if (!attribute.tensor) call.refuse("'" + std::string(name) + "' is no tensor");
  return array_of(*attribute.tensor, call.folder).to_doubles();
}

}  // namespace

MILLRACE_ONNX_IMPORT(ai_onnx_ml_TreeEnsemble) {
  const std::vector<double> modes = numbers_of(call, "nodes_modes"),
                            splits = numbers_of(call, "nodes_splits"),
                            weights = numbers_of(call, "leaf_weights");
  const Ints features = call.ints("nodes_featureids"), yes = call.ints("nodes_truenodeids"),
             no = call.ints("nodes_falsenodeids"), yes_leaf = call.ints("nodes_trueleafs"),
             no_leaf = call.ints("nodes_falseleafs"), targets = call.ints("leaf_targetids"),
             missing = call.ints("nodes_missing_value_tracks_true", Ints(features.size(), 0));
  const size_t n = features.size();
  for (const size_t size :
       {modes.size(), splits.size(), yes.size(), no.size(), yes_leaf.size(), no_leaf.size(), missing.size()})
    if (size != n) call.refuse("its lists of nodes have different lengths");
  if (weights.size() != targets.size() || call.rank(0) != 2) call.refuse("its leaves or rows do not fit");
  std::vector<double> members =
      call.has("membership_values") ? numbers_of(call, "membership_values") : std::vector<double>{};
  Forest forest;
  forest.targets = call.integer("n_targets", 1);
  for (size_t i = 0; i < n + targets.size(); ++i) forest.add();
  const auto child = [&](int64_t id, bool leaf) {
    const int64_t count = static_cast<int64_t>(leaf ? targets.size() : n);
    if (id < 0 || id >= count) call.refuse("its nodes lead to nodes that are not there");
    return leaf ? id + static_cast<int64_t>(n) : id;
  };
  size_t at = 0;
  for (size_t i = 0; i < n; ++i) {
    forest.features[i] = features[i];
    forest.splits[i] = splits[i];
    forest.missing[i] = missing[i];
    if (!(modes[i] >= 0 && modes[i] <= static_cast<double>(member)))
      call.refuse("its nodes_modes are not known");
    forest.modes[i] = static_cast<int64_t>(modes[i]);
    forest.yes[i] = child(yes[i], yes_leaf[i] != 0);
    forest.no[i] = child(no[i], no_leaf[i] != 0);
    if (forest.modes[i] != member) continue;
    while (at < members.size() && !std::isnan(members[at])) forest.members[i].push_back(members[at++]);
    ++at;  // NaN ends a set
  }
  for (size_t i = 0; i < targets.size(); ++i) forest.weights[n + i].emplace_back(targets[i], weights[i]);
  for (const int64_t root : call.ints("tree_roots")) forest.roots.push_back(child(root, false));
  constexpr const char* aggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  constexpr const char* transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const int64_t aggregate = call.integer("aggregate_function", 1),
                transform = call.integer("post_transform", 0);
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)
    call.refuse("its aggregate_function or post_transform is not known");
  return {transformed_by(call, grown(call, forest, aggregates[aggregate], call[0]), transforms[transform])};
}

/// The same before version 5: nodes are named by tree and number.
MILLRACE_ONNX_IMPORT(ai_onnx_ml_TreeEnsembleRegressor) {
  const Ints trees = call.ints("nodes_treeids"), ids = call.ints("nodes_nodeids"),
             features = call.ints("nodes_featureids"), yes = call.ints("nodes_truenodeids"),
             no = call.ints("nodes_falsenodeids"),
             missing = call.ints("nodes_missing_value_tracks_true", Ints(trees.size(), 0));
  const std::vector<double> splits = call.numbers("nodes_values");
  const std::vector<std::string>& modes = call.attribute("nodes_modes").texts;
  for (const size_t size :
       {ids.size(), features.size(), yes.size(), no.size(), missing.size(), splits.size(), modes.size()})
    if (size != trees.size()) call.refuse("its lists of nodes have different lengths");
  if (call.rank(0) != 2) call.refuse("its input is not [rows, columns]");
  Forest forest;
  forest.targets = call.integer("n_targets", 1);
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  for (size_t i = 0; i < trees.size(); ++i) {
    const int64_t at = forest.add();
    if (!places.emplace(std::pair(trees[i], ids[i]), at).second)
      call.refuse("two of its nodes have one number");
    if (i == 0 || trees[i] != trees[i - 1]) forest.roots.push_back(at);  // a tree's first node
  }
  const auto place = [&](int64_t tree, int64_t id) {
    const auto found = places.find({tree, id});
    if (found == places.end()) call.refuse("its nodes lead to nodes that are not there");
    return found->second;
  };
  const std::map<std::string, Branch> known = {{"BRANCH_LEQ", less_equal},    {"BRANCH_LT", less},
                                               {"BRANCH_GTE", greater_equal}, {"BRANCH_GT", greater},
                                               {"BRANCH_EQ", equal},          {"BRANCH_NEQ", not_equal}};
  for (size_t i = 0; i < trees.size(); ++i) {
    if (modes[i] == "LEAF") continue;
    const auto mode = known.find(modes[i]);
    if (mode == known.end()) call.refuse("its nodes_modes '" + modes[i] + "' is not known");
    forest.features[i] = features[i];
    forest.splits[i] = splits[i];
    forest.missing[i] = missing[i];
    forest.modes[i] = mode->second;
    forest.yes[i] = place(trees[i], yes[i]);
    forest.no[i] = place(trees[i], no[i]);
  }
  const Ints in = call.ints("target_treeids"), leaf = call.ints("target_nodeids"),
             targets = call.ints("target_ids");
  const std::vector<double> weights = call.numbers("target_weights");
  if (in.size() != leaf.size() || in.size() != targets.size() || in.size() != weights.size())
    call.refuse("its lists of leaves have different lengths");
  for (size_t i = 0; i < in.size(); ++i)
    forest.weights[static_cast<size_t>(place(in[i], leaf[i]))].emplace_back(targets[i], weights[i]);
  const Value x = call.dtype(0) == f64 ? call[0] : call.b.cast(call[0], f32);
  Value y = grown(call, forest, call.text("aggregate_function", "SUM"), x);
  const std::vector<double> base = call.numbers("base_values", std::vector<double>{});
  if (!base.empty() && static_cast<int64_t>(base.size()) != forest.targets)
    call.refuse("its base_values do not fit its targets");
  if (!base.empty()) y = call.b.add(y, call.constant(Array::of(call.b.dtype(y), {forest.targets}, base)));
  return {transformed_by(call, call.b.cast(y, f32), call.text("post_transform", "NONE"))};
}
