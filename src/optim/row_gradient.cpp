#include "optim/row_gradient.h"

#include <vector>

#include "ir/operator.h"
#include "ops/build.h"

namespace millrace::optim {
namespace {

bool is_zero(const Graph& graph, Value value) {
  while (graph.node(value).op->name == "broadcast") value = graph.node(value).operands[0];
  const Array* constant = graph.constant_value(value);
  return constant && constant->count() == 1 && constant->at(0) == 0;
}

/// Indices [n] and updates [n, …] of all scatter_adds that a gradient is the sum of; false when it is something else.
bool collect(Graph& graph, Value gradient, std::vector<Value>& indices, std::vector<Value>& updates) {
  const Node node = graph.node(gradient);  // a copy: adding nodes moves the original
  if (node.op->name == "add")
    return collect(graph, node.operands[0], indices, updates) &&
           collect(graph, node.operands[1], indices, updates);
  if (node.op->name != "scatter_add" || node.attributes.integer("axis") != 0 ||
      !is_zero(graph, node.operands[0]))
    return false;
  ops::Build b(graph);
  const int64_t count = b.shape(node.operands[1]).count();
  Shape flat{count};
  flat.insert(flat.end(), node.types[0].shape.begin() + 1, node.types[0].shape.end());
  indices.push_back(b.cast(b.reshape(node.operands[1], {count}), i64));
  updates.push_back(b.reshape(node.operands[2], flat));
  return true;
}

}  // namespace

std::optional<RowGradient> row_gradient(Graph& graph, Value gradient) {
  if (graph.type(gradient).shape.rank() == 0) return std::nullopt;
  std::vector<Value> indices, updates;
  if (!collect(graph, gradient, indices, updates)) return std::nullopt;
  const auto joined = [&](const std::vector<Value>& parts) {
    return parts.size() == 1 ? parts[0] : graph.add("concat", parts, {{"axis", int64_t{0}}});
  };
  ops::Build b(graph);
  const Value all = joined(indices), each = joined(updates);
  const Value first = graph.add("first_occurrence", {all});
  const Value own = graph.add("iota", {}, {{"shape", b.shape(all)}, {"axis", int64_t{0}}, {"dtype", i32}});
  RowGradient found;
  found.rows = b.select(b.binary("equal", first, own), all, b.fill(all, -1));
  found.values = graph.add("scatter_add", {b.zeros(each), first, each}, {{"axis", int64_t{0}}});
  return found;
}

bool few_rows(const Graph& graph, Value gradient) {
  int64_t rows = 0;
  std::vector<Value> open{gradient};
  while (!open.empty()) {
    const Node& node = graph.node(open.back());
    open.pop_back();
    if (node.op->name == "add")
      open.insert(open.end(), node.operands.begin(), node.operands.end());
    else if (node.op->name == "scatter_add")
      rows += graph.type(node.operands[1]).shape.count();
    else
      return false;
  }
  const Shape& table = graph.type(gradient).shape;
  return table.rank() > 0 && rows * 2 <= table[0].size();
}

Value rows_of(Graph& graph, const RowGradient& gradient, Value table) {
  return graph.add("gather", {table, gradient.rows}, {{"axis", int64_t{0}}});
}

Value with_rows(Graph& graph, const RowGradient& gradient, Value table, Value rows) {
  return graph.add("scatter_rows", {table, gradient.rows, rows});
}

}  // namespace millrace::optim
