#include "optim/row_gradient.h"

#include <vector>

#include <millrace/operator.h>

#include "ops/build.h"
#include "ops/scatter_add.h"

namespace millrace::optim {
namespace {

Value joined(Graph& graph, const std::vector<Value>& parts) {
  return parts.size() == 1 ? parts[0] : graph.add("concat", parts, {{"axis", int64_t{0}}});
}

}  // namespace

std::optional<int64_t> row_count(const Graph& graph, Value gradient) {
  int64_t rows = 0;
  std::vector<Value> open{gradient};
  while (!open.empty()) {
    const Value term = open.back();
    const Node& node = graph.node(term);
    open.pop_back();
    if (node.op->is(ScalarOp::add))
      open.insert(open.end(), node.operands.begin(), node.operands.end());
    else if (const auto sum = ops::row_sum(graph, term))
      rows += graph.type(sum->indices).shape.count();
    else
      return std::nullopt;
  }
  return rows;
}

void collect_rows(Graph& graph, Value gradient, Rows& rows) {
  const Node node = graph.node(gradient);  // a copy: adding nodes moves the original
  if (node.op->is(ScalarOp::add)) {
    for (const Value& term : node.operands) collect_rows(graph, term, rows);
    return;
  }
  ops::Build b(graph);
  const int64_t count = b.shape(node.operands[1]).count();
  Shape flat{count};
  flat.insert(flat.end(), node.types[0].shape.begin() + 1, node.types[0].shape.end());
  rows.indices.push_back(b.cast(b.reshape(node.operands[1], {count}), i64));
  rows.updates.push_back(b.reshape(node.operands[2], flat));
}

Value sum_of_rows(Graph& graph, const Rows& rows, const Type& table) {
  ops::Build b(graph);
  const Value zeros = b.broadcast(b.scalar(table.dtype, 0), table.shape);
  return graph.add("scatter_add", {zeros, joined(graph, rows.indices), joined(graph, rows.updates)},
                   {{"axis", int64_t{0}}});
}

std::optional<RowGradient> row_gradient(Graph& graph, Value gradient) {
  if (!row_count(graph, gradient)) return std::nullopt;
  Rows parts;
  collect_rows(graph, gradient, parts);
  ops::Build b(graph);
  const Value all = joined(graph, parts.indices), each = joined(graph, parts.updates);
  const Value first = graph.add("first_occurrence", {all});
  const Value own = graph.add("iota", {}, {{"shape", b.shape(all)}, {"axis", int64_t{0}}, {"dtype", i32}});
  RowGradient found;
  found.rows = b.select(b.binary("equal", first, own), all, b.fill(all, -1));
  found.values = graph.add("scatter_add", {b.zeros(each), first, each}, {{"axis", int64_t{0}}});
  return found;
}

bool few_rows(const Graph& graph, Value gradient) {
  const auto rows = row_count(graph, gradient);
  return rows && *rows * 2 <= graph.type(gradient).shape[0].size();
}

Value rows_of(Graph& graph, const RowGradient& gradient, Value table) {
  return graph.add("gather", {table, gradient.rows}, {{"axis", int64_t{0}}});
}

Value with_rows(Graph& graph, const RowGradient& gradient, Value table, Value rows) {
  return graph.add("scatter_rows", {table, gradient.rows, rows});
}

}  // namespace millrace::optim
