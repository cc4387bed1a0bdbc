#include "plan/rows.h"

#include <algorithm>
#include <map>

#include <millrace/operator.h>

#include "base/contains.h"
#include "ir/values.h"
#include "passes/kept_axis.h"

namespace millrace {
namespace {

/// Copies a graph with another number of rows.
class RowCutter {
 public:
  RowCutter(const Graph& graph, const std::vector<char>& row_inputs, int64_t to)
      : graph_(graph), row_inputs_(row_inputs), to_(to), rows_(graph.size()) {}

  /// Which outputs have rows; nullopt when the graph cannot be cut.
  std::optional<std::vector<char>> check() {
    for (size_t k = 0; k < row_inputs_.size(); ++k) rows_[graph_.inputs()[k].node] = {row_inputs_[k]};
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      if (!rows_[i].empty()) continue;
      rows_[i].assign(node.types.size(), 0);
      const bool any = std::any_of(node.operands.begin(), node.operands.end(),
                                   [&](const Value& operand) { return has_rows(operand); });
      if (!any) continue;
      if (node.op->op_class == OpClass::group) {
        const auto outputs = cutter_of(node).check();
        if (!outputs) return std::nullopt;
        rows_[i] = *outputs;
      } else if (!by_row(node).empty()) {
        rows_[i].assign(node.types.size(), 1);
      } else {
        return std::nullopt;
      }
    }
    std::vector<char> outputs;
    for (const Value& output : graph_.outputs()) outputs.push_back(has_rows(output));
    return outputs;
  }

  Graph cut() {
    for (size_t k = 0; k < row_inputs_.size(); ++k) {
      const Value input = graph_.inputs()[k];
      Type type = graph_.type(input);
      if (row_inputs_[k]) type.shape[0] = Dim(to_);
      made_[{input, row_inputs_[k] != 0}] = into_.input(graph_.input_names()[k], type);
    }
    std::vector<Value> outputs;
    for (const Value& output : graph_.outputs()) outputs.push_back(emit(output, has_rows(output)));
    into_.set_origin("");
    into_.set_outputs(outputs);
    return std::move(into_);
  }

 private:
  bool has_rows(Value value) const { return rows_[value.node][value.output] != 0; }

  RowCutter cutter_of(const Node& fused) const {
    std::vector<char> inputs;
    for (const Value& operand : fused.operands) inputs.push_back(has_rows(operand));
    return {*fused.body, inputs, to_};
  }

  /// A value without rows of its own that is the same for every row, and can be made for any number of them.
  bool repeats(Value value) const {
    const Node& node = graph_.node(value);
    if (node.op->broadcasts) {
      const Shape& source = graph_.type(node.operands[0]).shape;
      return !has_rows(node.operands[0]) && (source.rank() < node.types[0].shape.rank() || source[0] == 1);
    }
    return node.op->op_class == OpClass::elementwise && !node.operands.empty() &&
           std::all_of(node.operands.begin(), node.operands.end(),
                       [&](const Value& v) { return repeats(v); });
  }

  /// Which operands a row of the result takes the same row of (1; of others it takes all); empty: rows depend
  /// on each other.
  std::vector<char> by_row(const Node& node) const {
    const std::vector<Type> types = types_of(graph_, node.operands);
    std::vector<char> taken;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const bool kept = kept_axis(node, types, static_cast<int>(k), 0) == 0;
      const bool own = has_rows(node.operands[k]);
      // Others must not differ from row to row where rows are taken one by one.
      if (own != kept && (own || !repeats(node.operands[k]))) return {};
      taken.push_back(kept ? 1 : 0);
    }
    return taken;
  }

  Attributes with_new_rows(const Node& node) const {
    Attributes attributes = node.attributes;
    if (node.op->set_axis) node.op->set_axis(attributes, 0, to_);
    return attributes;
  }

  /// The value in the new graph; `rows`: for the new number of rows, else as it was.
  Value emit(Value value, bool rows) {
    if (const auto it = made_.find({value, rows}); it != made_.end()) return it->second;
    const Node& node = graph_.node(value);
    const bool repeated = rows && !has_rows(value);
    // What is repeated for all rows is element-wise or a broadcast (of what has none).
    const std::vector<char> taken =
        repeated ? std::vector<char>(node.operands.size(), node.op->op_class == OpClass::elementwise)
        : rows && node.op->op_class != OpClass::group ? by_row(node)
                                                      : std::vector<char>{};
    std::vector<Value> operands;
    for (size_t k = 0; k < node.operands.size(); ++k)
      operands.push_back(emit(node.operands[k], taken.empty() ? has_rows(node.operands[k]) : taken[k] != 0));
    into_.set_origin(node.origin);
    Value added;
    if (node.op->op_class == OpClass::group)
      added = into_.add_with_body(*node.op, operands, node.attributes, cut_body(node));
    else if (rows)
      added = into_.add(*node.op, operands, with_new_rows(node));
    else
      added = into_.add_copy(graph_, value.node, operands);
    for (size_t r = 0; r < node.types.size(); ++r) {
      const Value result{value.node, static_cast<int32_t>(r)};
      made_[{result, repeated || has_rows(result)}] = {added.node, result.output};
    }
    return made_.at({value, rows});
  }

  std::shared_ptr<const Graph> cut_body(const Node& fused) const {
    RowCutter cutter = cutter_of(fused);
    cutter.check();
    return std::make_shared<const Graph>(cutter.cut());
  }

  const Graph& graph_;
  std::vector<char> row_inputs_;
  int64_t to_;
  std::vector<std::vector<char>> rows_;  // node → result → has rows
  std::map<std::pair<Value, bool>, Value> made_;
  Graph into_;
};

}  // namespace

std::optional<Graph> with_rows(const Graph& body, const std::vector<char>& row_inputs, int64_t to) {
  RowCutter cutter(body, row_inputs, to);
  const auto outputs = cutter.check();
  if (!outputs || contains(*outputs, 0)) return std::nullopt;
  return cutter.cut();
}

}  // namespace millrace
