#include <tuple>

#include "ops/body.h"
#include "ops/build.h"
#include "ops/registry.h"
#include "ops/scan.h"

using namespace millrace;

namespace {

std::vector<Type> while_types(const TypeContext& c) {
  const int64_t carries = c.attributes.integer("carries");
  if (c.operands.empty() || c.operands[0] != Type{boolean, {}})
    c.error("the first carry, which says whether it goes on, must be bool[]");
  const std::vector<Type> types = ops::loop_types(c, carries, 0);
  if (static_cast<int64_t>(types.size()) > carries && c.attributes.shape("length")[0] == Dim(no_limit))
    c.error("what is stacked needs a limit of the steps");
  return types;
}

/// Goes on while the step's number is below a bound: x' = x·0.5 + y; stacks x and the number.
Graph halving(std::span<const Type> operands) {
  Graph graph;
  ops::Build b(graph);
  const std::vector<Value> in = ops::add_inputs(graph, operands);  // going, number, x; y, bound
  const Value next = b.add(in[1], 1), x = b.add(b.mul(in[2], 0.5), in[3]);
  graph.set_outputs({graph.add("less", {next, in[4]}), next, x, b.unary("sin", x), in[1]});
  return graph;
}

/// Goes on until the sum of x is large: nothing stacked.
Graph growing(std::span<const Type> operands) {
  Graph graph;
  ops::Build b(graph);
  const std::vector<Value> in = ops::add_inputs(graph, operands);  // going, x; matrix
  const Value x = b.add(b.unary("tanh", b.matmul(in[1], in[2])), in[1]);
  const Value size = b.sum(b.mul(x, x), {0, 1}, false);
  graph.set_outputs({graph.add("less", {size, graph.scalar(b.dtype(size), 1e6)}), x});
  return graph;
}

std::vector<Sample> while_samples() {
  std::vector<Sample> samples;
  for (const DType dtype : {f32, f64})
    for (const auto& [limit, bound, going] : std::vector<std::tuple<int64_t, double, double>>{
             {6, 4, 1}, {3, 9, 1}, {4, 4, 0}, {0, 4, 1}, {1, 0, 1}})
      samples.push_back({.operands = {{boolean, {}}, {i64, {}}, {dtype, {2, 3}}, {dtype, {2, 3}}, {i64, {}}},
                         .attributes = {{"carries", int64_t{3}}, {"length", Shape{limit}}},
                         .values = {{0, {going}}, {1, {0}}, {4, {bound}}},
                         .note = "halving",
                         .body = halving});
  samples.push_back({.operands = {{boolean, {}}, {f32, {3, 4}}, {f32, {4, 4}}},
                     .attributes = {{"carries", int64_t{2}}, {"length", Shape{5}}},
                     .low = -0.7,
                     .high = 0.7,
                     .values = {{0, {1}}},
                     .note = "growing",
                     .body = growing});
  return samples;
}

}  // namespace

MILLRACE_OPERATOR(while_loop) {
  Operator op;
  op.name = "while_loop";
  op.op_class = OpClass::loop;
  op.doc =
      "Runs the body as long as the first carry, a bool, is true, and for `length` steps at most. Operands: "
      "carries (values from step to step, with their first values) and invariants (the same in every step); "
      "the body takes them in this order and gives the next carries, then what is stacked along a new "
      "dimension 0 of `length` positions. Results: the last carries, then the stacks, which are zero for "
      "steps "
      "that were not run.";
  op.min_operands = 1;
  op.max_operands = -1;
  op.attributes = {{"carries", AttributeType::integer, "how many operands are carries", {.low = 1}},
                   {"length", AttributeType::shape, "the most steps: a shape of one dimension"}};
  op.types = while_types;
  op.flops = [](const Graph& graph, const Node& node) {
    const Dim limit = ops::scan_of(node).length;
    const double all = ops::loop_flops(graph, node);
    return limit == Dim(no_limit) ? all / static_cast<double>(no_limit)
                                  : all;  // one step, where none is known
  };
  op.tolerance = {.f32 = 1e-4, .f64 = 1e-11, .half = 3e-2};
  op.samples = while_samples();
  op.repeat = Repeat::never;
  op.onnx = {"Loop"};
  return op;
}
