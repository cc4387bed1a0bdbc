#include <doctest/doctest.h>

#include <millrace/operator.h>

#include "autodiff/gradient.h"
#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "ops/scan.h"
#include "passes/pass.h"
#include "support/graphs.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

const Node* loop_of(const Graph& graph, int number) {
  for (int i = 0; i < graph.size(); ++i)
    if (graph.node(i).op->op_class == OpClass::loop && number-- == 0) return &graph.node(i);
  return nullptr;
}

/// An Elman cell over 5 steps of 4 rows: h' = tanh(h·Uᵀ + x·Wᵀ + b), with gradients when asked. Weights are
/// constants when they are given.
Graph elman(bool with_gradients, const std::vector<Array>& weights = {}) {
  Graph body;
  ops::Build b(body);
  const Value h = body.input("h", {f32, {4, 6}}), x = body.input("x", {f32, {4, 3}}),
              u = body.input("u", {f32, {6, 6}}), w = body.input("w", {f32, {6, 3}}),
              bias = body.input("b", {f32, {6}});
  const Value next =
      b.unary("tanh", b.add(b.add(b.matmul(h, u, false, true), b.matmul(x, w, false, true)), bias));
  body.set_outputs({next, next});
  Graph graph;
  ops::ScanOperands over;
  over.carries = {graph.input("h0", {f32, {4, 6}})};
  over.sequences = {graph.input("xs", {f32, {5, 4, 3}})};
  for (const Array& weight : weights) over.invariants.push_back(graph.constant(weight));
  if (weights.empty())
    over.invariants = {graph.input("u", {f32, {6, 6}}), graph.input("w", {f32, {6, 3}}),
                       graph.input("b", {f32, {6}})};
  over.length = 5;
  const Value scan = ops::add_scan(graph, over, std::make_shared<const Graph>(std::move(body)));
  std::vector<Value> outputs = {scan, {scan.node, 1}};
  if (with_gradients) {
    const Value seed = graph.input("g", {f32, {5, 4, 6}});
    const std::vector<Value> wrt(graph.inputs().begin(), graph.inputs().end() - 1);
    for (const Value& g : gradients(graph, std::span(&outputs[1], 1), std::span(&seed, 1), wrt))
      outputs.push_back(g);
  }
  graph.set_outputs(outputs);
  return graph;
}

Graph lowered(const Graph& graph, const std::string& precision = "fp32", bool exact = false) {
  static const Target target;
  return run_passes(graph, {target, precision, ref::evaluate_node, exact});
}

/// Over 5 steps total += xᵀ·y, with each total before its step when asked.
Graph product_sums(bool with_totals) {
  Graph body;
  ops::Build b(body);
  const Value total = body.input("total", {f32, {2, 3}}), x = body.input("x", {f32, {4, 2}}),
              y = body.input("y", {f32, {4, 3}});
  std::vector<Value> results = {b.add(total, b.matmul(x, y, true, false))};
  if (with_totals) results.push_back(total);
  body.set_outputs(results);
  Graph graph;
  ops::ScanOperands over;
  over.carries = {graph.input("zero", {f32, {2, 3}})};
  over.sequences = {graph.input("xs", {f32, {5, 4, 2}}), graph.input("ys", {f32, {5, 4, 3}})};
  over.length = 5;
  const Value scan = ops::add_scan(graph, over, std::make_shared<const Graph>(std::move(body)));
  std::vector<Value> outputs = {scan};
  if (with_totals) outputs.push_back({scan.node, 1});
  graph.set_outputs(outputs);
  return graph;
}

std::vector<Array> inputs_of(const Graph& graph) {
  std::vector<Array> inputs;
  for (const Value& input : graph.inputs()) {
    inputs.emplace_back(graph.type(input));
    for (int64_t i = 0; i < inputs.back().count(); ++i)
      inputs.back().set(i, 0.02 * static_cast<double>((i * 29 + input.node * 7) % 83) - 0.8);
  }
  return inputs;
}

}  // namespace

TEST_CASE("the product of the slices leaves the loop as one product over all steps") {
  const Graph result = lowered(elman(false));
  const Node* loop = loop_of(result, 0);
  REQUIRE(loop);
  CHECK(test::count(*loop->body, "matmul") == 1);
  CHECK(test::count(*loop->body, "transpose") == 0);
  int large = 0;
  for (int i = 0; i < result.size(); ++i)
    large += result.node(i).op->name == "matmul" && result.node(i).types[0].shape == Shape{20, 6};
  CHECK(large == 1);
}

TEST_CASE("weights that are constants are not turned before a loop: its kernels pack them as they lie") {
  const std::vector<Array> weights = {test::values_for({f32, {6, 6}}, 1), test::values_for({f32, {6, 3}}, 2),
                                      test::values_for({f32, {6}}, 3)};
  const Graph graph = elman(false, weights), result = lowered(graph);
  CHECK(test::count(result, "transpose") == 0);
  CHECK(test::count(lowered(elman(false)), "transpose") == 1);
  const std::vector<Array> inputs = inputs_of(graph), expected = ref::evaluate(graph, inputs),
                           found = ref::evaluate(result, inputs);
  for (size_t o = 0; o < expected.size(); ++o) CHECK(test::difference(found[o], expected[o]) < 1e-6);
}

TEST_CASE("weight gradients leave the backward loop as one product over steps and rows, sums as one sum") {
  const Graph result = lowered(elman(true));
  CHECK(test::count(result, "scan") == 2);
  const Node* loop = loop_of(result, 1);
  REQUIRE(loop);
  CHECK(loop->attributes.flag("reverse"));
  CHECK(test::count(*loop->body, "matmul") == 1);  // to the earlier state
  CHECK(test::count(*loop->body, "sum") == 0);
  CHECK(loop->attributes.integer("carries") == 1);  // no sums of gradients are carried
  int weights = 0;
  for (int i = 0; i < result.size(); ++i) {
    const Node& node = result.node(i);
    weights += node.op->name == "matmul" && node.attributes.flag("transpose_a") &&
               result.type(node.operands[0]).shape[0] == 20;
  }
  CHECK(weights == 2);
}

TEST_CASE("in mixed precision weight gradients are one product too, and gradients leave the loop once") {
  for (const std::string precision : {"bf16", "fp16"}) {
    CAPTURE(precision);
    const Graph graph = elman(true), result = lowered(graph, precision);
    for (int i = 0; i < result.size(); ++i)
      if (result.node(i).op->name == "matmul") CHECK(result.node(i).types[0].shape.rank() == 2);
    const Node* loop = loop_of(result, 1);
    REQUIRE(loop);
    CHECK(loop->types.size() ==
          2);  // the state's gradient, and the stack that products and the bias's sum read
    const std::vector<Array> inputs = inputs_of(graph), expected = ref::evaluate(graph, inputs),
                             found = ref::evaluate(result, inputs);
    for (size_t o = 0; o < expected.size(); ++o)
      CHECK(test::difference(found[o], expected[o]) < (precision == "bf16" ? 0.05 : 0.006));
  }
}

TEST_CASE("hoisting changes no result beyond the order of sums") {
  for (const bool with_gradients : {false, true}) {
    const Graph graph = elman(with_gradients);
    const std::vector<Array> inputs = inputs_of(graph), expected = ref::evaluate(graph, inputs),
                             found = ref::evaluate(lowered(graph), inputs);
    for (size_t o = 0; o < expected.size(); ++o) CHECK(test::difference(found[o], expected[o]) < 1e-5);
  }
}

TEST_CASE("results of a loop that nobody reads go, with what only they need") {
  Graph graph = elman(true);
  graph.set_outputs({graph.outputs()[3]});  // the gradient of the sequence alone
  const Graph result = lowered(graph);
  const Node* backward = loop_of(result, 1);
  REQUIRE(backward);
  CHECK(backward->types.size() == 2);  // the state's gradient and the stack that the product behind it reads
}

TEST_CASE("what is invariant is computed once") {
  Graph body;
  ops::Build b(body);
  const Value h = body.input("h", {f32, {3}}), w = body.input("w", {f32, {3}});
  const Value next = b.mul(h, b.unary("exp", w));
  body.set_outputs({next});
  Graph graph;
  ops::ScanOperands over;
  over.carries = {graph.input("h0", {f32, {3}})};
  over.invariants = {graph.input("w", {f32, {3}})};
  over.length = 4;
  graph.set_outputs({ops::add_scan(graph, over, std::make_shared<const Graph>(std::move(body)))});
  const Graph result = lowered(graph);
  CHECK(test::count(result, "exp") == 1);
  CHECK(test::count(*loop_of(result, 0)->body, "exp") == 0);
}

TEST_CASE("a sum of products is one product, but where somebody sees the totals or their order must stay") {
  CHECK(test::count(lowered(product_sums(false)), "scan") == 0);
  for (const bool with_totals : {false, true}) {
    const Graph graph = product_sums(with_totals);
    const std::vector<Array> inputs = inputs_of(graph), expected = ref::evaluate(graph, inputs);
    for (const bool exact : {false, true}) {
      CAPTURE(with_totals);
      CAPTURE(exact);
      const Graph result = lowered(graph, "fp32", exact);
      CHECK((test::count(result, "scan") == 1) == (with_totals || exact));
      const std::vector<Array> found = ref::evaluate(result, inputs);
      for (size_t o = 0; o < expected.size(); ++o) CHECK(test::difference(found[o], expected[o]) < 1e-5);
    }
  }
}

TEST_CASE("a reduction behind the loop goes over the axes that it had in a step, counted from the end too") {
  for (const std::vector<int64_t>& axes : std::vector<std::vector<int64_t>>{{-1}, {1}, {-2}, {}}) {
    Graph body;
    ops::Build b(body);
    const Value h = body.input("h", {f32, {4, 6}}), u = body.input("u", {f32, {6, 6}}),
                v = body.input("v", {f32, {6, 3}});
    const Value next = b.unary("tanh", b.matmul(h, u));
    body.set_outputs({next, body.add("sum", {b.matmul(next, v)}, {{"axes", axes}})});
    Graph graph;
    ops::ScanOperands over;
    over.carries = {graph.input("h0", {f32, {4, 6}})};
    over.invariants = {graph.input("u", {f32, {6, 6}}), graph.input("v", {f32, {6, 3}})};
    over.length = 5;
    const Value scan = ops::add_scan(graph, over, std::make_shared<const Graph>(std::move(body)));
    graph.set_outputs({{scan.node, 1}});
    const Graph result = lowered(graph);
    CHECK(test::count(*loop_of(result, 0)->body, "sum") == 0);
    const std::vector<Array> inputs = inputs_of(graph);
    CHECK(test::difference(ref::evaluate(result, inputs)[0], ref::evaluate(graph, inputs)[0]) < 1e-5);
  }
}
