#include <doctest/doctest.h>
#include <functional>

#include <millrace/operator.h>
#include <millrace/random.h>

#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "passes/pass.h"
#include "support/graphs.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

Array random_array(const Shape& shape, uint64_t seed) {
  RandomStream random(seed, 5);
  Array array(f32, shape);
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, random.uniform() + 0.5);
  return array;
}

Graph folded(const Graph& graph) {
  static const Target target;
  const PassContext context{target, "fp32", ref::evaluate_node};
  Graph g = passes().at("inline").run(graph, context);
  for (const char* name : {"fold", "fold-scale", "fold", "dce"}) {
    g = passes().at(name).run(g, context);
    g.verify();
  }
  return g;
}

}  // namespace

TEST_CASE("what depends on constants alone is evaluated when the graph is compiled") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {3}}), c = graph.constant(random_array({3}, 1));
  graph.set_outputs({b.add(x, b.unary("exp", b.mul(c, 2.0)))});
  const Graph result = folded(graph);
  CHECK(test::count(result, "exp") == 0);
  CHECK(test::count(result, "add") == 1);
}

TEST_CASE("what no output needs is not evaluated") {
  Graph graph;
  const Value x = graph.input("x", {f32, {3, 5}}), w = graph.constant(random_array({7, 5}, 1)),
              turned = graph.add("transpose", {w}, {{"permutation", std::vector<int64_t>{1, 0}}});
  graph.set_outputs({graph.add("matmul", {x, turned})});
  static const Target target;
  int evaluated = 0;
  const PassContext context{target, "fp32", [&](const Graph& g, const Node& node, auto operands) {
                              ++evaluated;
                              return ref::evaluate_node(g, node, operands);
                            }};
  // The product reads the weights as they were.
  const Graph simple = passes().at("simplify").run(graph, context);
  REQUIRE(simple.node(simple.outputs()[0]).attributes.flag("transpose_b"));
  (void)passes().at("fold").run(simple, context);
  CHECK(evaluated == 0);
}

TEST_CASE("inference normalisation after a convolution becomes scaled weights and a bias") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {2, 3, 5, 5}});
  const Value w = graph.constant(random_array({4, 3, 3, 3}, 2));
  const Value y = b.add(graph.add("conv2d", {x, w}), graph.constant(random_array({4, 1, 1}, 9)));
  std::vector<Value> operands = {y};
  for (uint64_t seed = 3; seed < 7; ++seed) operands.push_back(graph.constant(random_array({4}, seed)));
  graph.set_outputs({b.unary("relu", graph.add("batch_norm_inference", operands))});
  const Graph result = folded(graph);
  CHECK(test::count(result, "conv2d") == 1);
  CHECK(test::count(result, "mul") == 0);
  const Array input = random_array({2, 3, 5, 5}, 8);
  CHECK(test::difference(ref::evaluate(result, std::span(&input, 1))[0],
                         ref::evaluate(graph, std::span(&input, 1))[0]) < 1e-5);
}

TEST_CASE("one number for all channels behind a convolution goes into its constant weights") {
  for (const bool divides : {false, true})
    for (const bool bias : {false, true}) {
      Graph graph;
      ops::Build b(graph);
      const Value x = graph.input("x", {f32, {2, 3, 5, 5}});
      Value y = graph.add("conv2d", {x, graph.constant(random_array({40, 3, 3, 3}, 2))});
      if (bias) y = b.add(y, graph.constant(random_array({40, 1, 1}, 9)));
      graph.set_outputs({divides ? b.div(y, 0.125) : b.mul(y, 0.3)});
      const Graph result = folded(graph);
      CHECK(test::count(result, "mul") + test::count(result, "div") == 0);
      for (int i = 0; i < result.size(); ++i)
        if (result.node(i).op->name == "conv2d") CHECK(result.constant_value(result.node(i).operands[1]));
      const Array input = random_array({2, 3, 5, 5}, 8);
      CHECK(test::difference(ref::evaluate(result, std::span(&input, 1))[0],
                             ref::evaluate(graph, std::span(&input, 1))[0]) < 1e-5);
    }
}

TEST_CASE("a convolution that others read keeps its value") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {1, 2, 4, 4}});
  const Value y = graph.add("conv2d", {x, graph.constant(random_array({2, 2, 1, 1}, 2))});
  graph.set_outputs({b.mul(y, graph.constant(random_array({2, 1, 1}, 4))), y});
  CHECK(test::count(folded(graph), "mul") == 1);
}

TEST_CASE("factors of channels, quotients and what is added or taken away before them become one bias") {
  struct Chain {
    bool divides, subtracts, factor_first, factor_of_all;
  };
  for (const Chain c : {Chain{false, false, false, false},
                        {false, true, true, false},
                        {true, false, false, false},
                        {true, true, false, true},
                        {false, true, false, true}}) {
    CAPTURE(c.divides);
    CAPTURE(c.subtracts);
    CAPTURE(c.factor_first);
    Graph graph;
    ops::Build b(graph);
    const Value x = graph.input("x", {f32, {2, 3, 5, 4}});
    Value y = graph.add("conv2d", {x, graph.constant(random_array({4, 3, 3, 3}, 2))});
    y = b.add(y, graph.constant(random_array({4, 1, 1}, 3)));
    const Value term = graph.constant(random_array({4, 1, 1}, 4));
    y = c.subtracts ? b.sub(y, term) : b.add(y, term);
    const Value factor = graph.constant(random_array(c.factor_of_all ? Shape{} : Shape{4, 1, 1}, 5));
    y = c.divides ? b.div(y, factor) : c.factor_first ? b.mul(factor, y) : b.mul(y, factor);
    graph.set_outputs({y});
    const Graph result = folded(graph);
    CHECK(test::count(result, "mul") + test::count(result, "div") + test::count(result, "sub") == 0);
    CHECK(test::count(result, "add") == 1);
    const Array input = random_array({2, 3, 5, 4}, 8);
    CHECK(test::difference(ref::evaluate(result, std::span(&input, 1))[0],
                           ref::evaluate(graph, std::span(&input, 1))[0]) < 1e-5);
  }
}

TEST_CASE("what is no factor of a convolution's channels stays where it is") {
  const auto computes_the_same = [](const std::function<Value(ops::Build&, Value x, Value conv)>& rest,
                                    int products) {
    Graph graph;
    ops::Build b(graph);
    const Value x = graph.input("x", {f32, {2, 4, 4, 4}});
    graph.set_outputs({rest(b, x, graph.add("conv2d", {x, graph.constant(random_array({4, 4, 1, 1}, 2))}))});
    const Graph result = folded(graph);
    CHECK(test::count(result, "mul") + test::count(result, "div") == products);
    const Array input = random_array({2, 4, 4, 4}, 8);
    CHECK(test::difference(ref::evaluate(result, std::span(&input, 1))[0],
                           ref::evaluate(graph, std::span(&input, 1))[0]) < 1e-5);
  };
  const auto constant = [](ops::Build& b, const Shape& shape, uint64_t seed) {
    return b.graph().constant(random_array(shape, seed));
  };
  // One for each column, not for each channel: the same number of them.
  computes_the_same([&](ops::Build& b, Value, Value y) { return b.mul(y, constant(b, {4}, 3)); }, 1);
  computes_the_same([&](ops::Build& b, Value, Value y) { return b.mul(y, constant(b, {4, 1}, 3)); }, 1);
  // The divisor is what the convolution gives.
  computes_the_same(
      [&](ops::Build& b, Value, Value y) {
        return b.div(constant(b, {4, 1, 1}, 3), b.add(y, 1.0));
      },
      1);
  // What is added is no constant, or another reads the sum.
  computes_the_same(
      [&](ops::Build& b, Value x, Value y) {
        return b.mul(b.add(y, x), constant(b, {4, 1, 1}, 3));
      },
      1);
  computes_the_same(
      [&](ops::Build& b, Value, Value y) {
        const Value sum = b.add(y, constant(b, {4, 1, 1}, 3));
        return b.add(b.mul(sum, constant(b, {4, 1, 1}, 4)), b.unary("exp", b.neg(sum)));
      },
      1);
  // Taken from a constant, the convolution changes its sign.
  computes_the_same(
      [&](ops::Build& b, Value, Value y) {
        return b.mul(b.sub(constant(b, {4, 1, 1}, 3), y), constant(b, {4, 1, 1}, 4));
      },
      1);
}
