#include "ops/cond.h"

#include <numeric>

#include <millrace/operator.h>

#include "base/format.h"
#include "ops/body.h"
#include "ops/build.h"
#include "ops/registry.h"
#include "ops/work.h"

using namespace millrace;

namespace millrace::ops {

Graph join_branches(const Graph& then, const Graph& otherwise) {
  Graph body;
  std::vector<Value> inputs;
  for (size_t k = 0; k < then.inputs().size(); ++k)
    inputs.push_back(body.input(then.input_names()[k], then.type(then.inputs()[k])));
  std::vector<Value> outputs = inline_graph(body, then, inputs);
  for (const Value& output : inline_graph(body, otherwise, inputs)) outputs.push_back(output);
  body.set_origin("");
  body.set_outputs(std::move(outputs));
  return body;
}

Graph branch_of(const Graph& body, bool first) {
  const auto& outputs = body.outputs();
  const auto half = outputs.begin() + static_cast<int64_t>(outputs.size() / 2);
  const std::vector<Value> mine =
      first ? std::vector<Value>(outputs.begin(), half) : std::vector<Value>(half, outputs.end());
  std::vector<int> all(body.inputs().size());
  std::iota(all.begin(), all.end(), 0);
  return part_of_body(body, all, mine);
}

Value add_cond(Graph& graph, Value condition, const std::vector<Value>& operands,
               std::shared_ptr<const Graph> body) {
  static const Operator& cond = get_operator("cond");
  std::vector<Value> all = {condition};
  all.insert(all.end(), operands.begin(), operands.end());
  return graph.add_with_body(cond, std::move(all), {}, std::move(body));
}

}  // namespace millrace::ops

namespace {

std::vector<Type> cond_types(const TypeContext& c) {
  if (!c.body) c.error("a body is needed");
  const Graph& body = *c.body;
  if (c.operands.empty() || c.operands[0] != Type{boolean, {}}) c.error("the condition must be bool[]");
  if (body.inputs().size() + 1 != c.operands.size())
    c.error(fmt::format("the body takes {} inputs", body.inputs().size()));
  for (size_t k = 0; k < body.inputs().size(); ++k)
    if (body.type(body.inputs()[k]) != c.operands[k + 1])
      c.error(fmt::format("the body takes {} as operand {}", body.type(body.inputs()[k]).str(), k + 1));
  const size_t results = body.outputs().size() / 2;
  if (results == 0 || body.outputs().size() % 2 != 0)
    c.error(fmt::format("the body gives {} values, not as many for each branch", body.outputs().size()));
  std::vector<Type> types;
  for (size_t r = 0; r < results; ++r) {
    types.push_back(body.type(body.outputs()[r]));
    if (const Type& other = body.type(body.outputs()[results + r]); other != types[r])
      c.error(
          fmt::format("result {} is {} of one branch and {} of the other", r, types[r].str(), other.str()));
  }
  return types;
}

/// A product and a sum, or the operands themselves.
Graph product_or_not(std::span<const Type> operands) {
  Graph graph;
  ops::Build b(graph);
  const std::vector<Value> in = ops::add_inputs(graph, operands.subspan(1));
  graph.set_outputs({b.matmul(in[0], in[1]), b.sum(in[0], {1}, false), in[0], b.sum(in[1], {0}, false)});
  return graph;
}

/// Of several types, with what both branches share.
Graph several(std::span<const Type> operands) {
  Graph graph;
  ops::Build b(graph);
  const std::vector<Value> in = ops::add_inputs(graph, operands.subspan(1));
  const Value shared = b.unary("sin", in[0]);
  graph.set_outputs({shared, b.add(in[1], 1), b.mul(shared, in[0]), in[1]});
  return graph;
}

std::vector<Sample> cond_samples() {
  std::vector<Sample> samples;
  for (const double condition : {1.0, 0.0}) {
    for (const DType dtype : {f32, f64})
      samples.push_back({.operands = {{boolean, {}}, {dtype, {4, 4}}, {dtype, {4, 4}}},
                         .values = {{0, {condition}}},
                         .note = "product",
                         .body = product_or_not});
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{0, 3}})
      samples.push_back({.operands = {{boolean, {}}, {f32, shape}, {i64, {3}}},
                         .values = {{0, {condition}}},
                         .note = "several",
                         .body = several});
  }
  return samples;
}

}  // namespace

MILLRACE_OPERATOR(cond) {
  Operator op;
  op.name = "cond";
  op.op_class = OpClass::branch;
  op.doc =
      "One of two branches. Operands: the condition, bool[], and what the branches take. The body holds "
      "both: "
      "its outputs are the results of the first, which is run where the condition is true, then those of the "
      "other, of the same types. Only the nodes that the chosen branch needs are run.";
  op.min_operands = 1;
  op.max_operands = -1;
  op.types = cond_types;
  op.flops = [](const Graph&, const Node& node) {  // of the longer branch
    double most = 0;
    for (const bool first : {true, false})
      most = std::max(most, ops::flops(ops::branch_of(*node.body, first)));
    return most;
  };
  op.tolerance = {.f32 = 1e-4, .f64 = 1e-11, .half = 3e-2};
  op.samples = cond_samples();
  op.repeat = Repeat::never;
  op.onnx = {"If"};
  return op;
}
