#include "session/summary.h"

#include <algorithm>

#include <millrace/operator.h>
#include <millrace/random.h>

#include "base/format.h"
#include "ops/work.h"

namespace millrace {
namespace {

/// Sizes of dimensions that no one has given and that do not stand first.
constexpr int64_t kExampleSize = 64;

class Summary {
 public:
  Summary(const Graph& graph, int given) : graph_(graph) {
    row_of_.assign(static_cast<size_t>(graph.size()), kFixed);
    sources_.resize(static_cast<size_t>(graph.size()));
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const int node = graph.inputs()[i].node;
      if (static_cast<int>(i) < given)
        row_of_[node] = kInput - static_cast<int>(i);
      else
        sources_[node] = {node};
    }
  }

  GraphSummary run() {
    for (int i = 0; i < graph_.size(); ++i) visit(i);
    for (size_t o = 0; o < graph_.outputs().size(); ++o)
      if (const int row = row_of_[graph_.outputs()[o].node]; row >= 0)
        summary_.rows[row].outputs.push_back(static_cast<int>(o));
    return std::move(summary_);
  }

 private:
  static constexpr int kFixed = -1, kInput = -2;  // kInput − i: input i

  void visit(int i) {
    const Node& node = graph_.node(i);
    if (row_of_[i] <= kInput) return;
    if (node.operands.empty()) {
      if (sources_[i].empty()) sources_[i] = {i};
      return;
    }
    const bool fixed = std::all_of(node.operands.begin(), node.operands.end(),
                                   [&](Value operand) { return row_of_[operand.node] == kFixed; });
    if (fixed) {
      for (const Value& operand : node.operands) join(sources_[i], sources_[operand.node]);
      return;
    }
    SummaryRow row;
    row.operation = node.op->name;
    row.name = node.origin.layer;
    for (size_t r = 0; r < node.types.size(); ++r) {
      row.types += (r ? ", " : "") + node.types[r].str();
      row.bytes += ops::bytes_written(graph_, node, static_cast<int>(r));
    }
    row.flops = ops::flops(graph_, node);
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const int from = node.operands[k].node, at = row_of_[from];
      row.bytes += ops::bytes_read(graph_, node, static_cast<int>(k));
      std::vector<int>& list = at >= 0 ? row.reads : row.inputs;
      const int which = at >= 0 ? at : kInput - at;
      if (at == kFixed)
        count_parameters(row, from);
      else if (std::find(list.begin(), list.end(), which) == list.end())
        list.push_back(which);
    }
    summary_.flops += row.flops;
    summary_.bytes += row.bytes;
    row_of_[i] = static_cast<int>(summary_.rows.size());
    summary_.rows.push_back(std::move(row));
  }

  /// The constants and weights that a node is made of.
  void count_parameters(SummaryRow& row, int node) {
    for (const int source : sources_[node]) {
      if (counted_.size() < static_cast<size_t>(graph_.size())) counted_.resize(graph_.size(), 0);
      if (counted_[source]++) continue;
      const Type& type = graph_.node(source).types[0];
      row.parameters += type.shape.count();
      summary_.parameters += type.shape.count();
      summary_.parameter_bytes += type.bytes();
    }
  }

  static void join(std::vector<int>& all, const std::vector<int>& more) {
    for (const int each : more)
      if (std::find(all.begin(), all.end(), each) == all.end()) all.push_back(each);
  }

  const Graph& graph_;
  std::vector<int> row_of_;                // of each node: its row, kFixed, or an input
  std::vector<std::vector<int>> sources_;  // of each fixed node: the constants and weights in it
  std::vector<char> counted_;
  GraphSummary summary_;
};

}  // namespace

GraphSummary summarise(const Graph& graph, int given) { return Summary(graph, given).run(); }

void fill_made_up(Array& array, uint64_t seed, uint64_t stream) {
  RandomStream random(seed, stream);
  for (int64_t i = 0; i < array.count(); ++i) {
    if (array.dtype().is_float())
      array.set(i, 2 * static_cast<double>(random.uniform()) - 1);
    else
      array.set_int(i, random.below(2));
  }
}

Bindings example_sizes(const std::vector<SessionValue>& inputs, Bindings sizes) {
  for (const SessionValue& input : inputs)
    for (int d = 0; d < input.type.shape.rank(); ++d)
      for (const std::string& name : input.type.shape[d].names())
        sizes.emplace(name, d == 0 ? 1 : kExampleSize);
  return sizes;
}

}  // namespace millrace
