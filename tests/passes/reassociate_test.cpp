#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <millrace/operator.h>
#include <millrace/random.h>

#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "passes/pass.h"
#include "support/graphs.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

Graph reordered(const Graph& graph, bool exact = false) {
  static const Target target;
  const PassContext context{target, "fp32", ref::evaluate_node, exact};
  Graph result = eliminate_dead(passes().at("reassociate").run(graph, context), context);
  result.verify();
  return result;
}

double flops(const Graph& graph) {
  double sum = 0;
  for (int i = 0; i < graph.size(); ++i)
    if (graph.node(i).op->flops) sum += graph.node(i).op->flops(graph, graph.node(i));
  return sum;
}

}  // namespace

TEST_CASE("a chain of products goes through its narrowest place") {
  Graph graph;
  ops::Build b(graph);
  const Value tall = graph.input("tall", {f32, {64, 2}}), wide = graph.input("wide", {f32, {2, 64}});
  graph.set_outputs({b.matmul(b.matmul(tall, wide), tall)});
  CHECK(flops(graph) == 2.0 * (64 * 2 * 64 + 64 * 64 * 2));
  CHECK(flops(reordered(graph)) == 2.0 * (2 * 64 * 2 + 64 * 2 * 2));
  // An order of sums is what exact programs keep.
  CHECK(reordered(graph, true).str() == graph.str());
}

TEST_CASE("savings that are not worth another rounding are left, of one matrix as of many") {
  for (const Shape& batch : {Shape{}, Shape{8}, Shape{2, 3}}) {
    Graph graph;
    ops::Build b(graph);
    const auto matrices = [&](const char* name, int64_t columns) {
      Shape shape = batch;
      shape.insert(shape.end(), {20, columns});
      return graph.input(name, {f32, shape});
    };
    const Value square = matrices("square", 20);
    graph.set_outputs({b.matmul(b.matmul(square, square), matrices("last", 19))});
    CHECK(reordered(graph).str() == graph.str());
  }
}

TEST_CASE("a product that somebody else reads stays") {
  Graph graph;
  ops::Build b(graph);
  const Value tall = graph.input("tall", {f32, {64, 2}}), wide = graph.input("wide", {f32, {2, 64}});
  const Value square = b.matmul(tall, wide);
  graph.set_outputs({b.matmul(square, tall), square});
  CHECK(flops(reordered(graph)) == flops(graph));
}

TEST_CASE("matrices that are known are multiplied with each other") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {32, 20}});
  const Value first = graph.constant(test::values_for({f32, {20, 24}}, 1));
  const Value second = graph.constant(test::values_for({f32, {16, 24}}, 2));
  graph.set_outputs({b.matmul(b.matmul(x, first), second, false, true)});
  const Graph after = reordered(graph);
  static const Target target;
  const Graph folded = fold_constants(after, {target, "fp32", ref::evaluate_node});
  CHECK(flops(eliminate_dead(folded, {target, "fp32", ref::evaluate_node})) == 2.0 * 32 * 20 * 16);
}

TEST_CASE("chains of any sizes, turns and batches keep their values") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, 9);
    const auto below = [&](int64_t n) {
      return static_cast<int64_t>(random.uniform() * static_cast<double>(n));
    };
    Graph graph;
    std::vector<Array> inputs;
    const bool batched = below(3) == 0;
    const auto fresh = [&](int64_t rows, int64_t columns) {
      const Type type{f32, batched ? Shape{3, rows, columns} : Shape{rows, columns}};
      Array values = test::values_for(type, seed * 100 + static_cast<uint64_t>(graph.size()));
      if (below(4) == 0) return graph.constant(values);
      inputs.push_back(values);
      return graph.input("m" + std::to_string(inputs.size()), type);
    };
    // Products of products, on either side, of matrices stored either way.
    const auto chain = [&](auto&& self, int64_t rows, int64_t columns, int64_t depth) -> Value {
      if (depth == 0) return fresh(rows, columns);
      const int64_t inner = 1 + below(30);
      const bool ta = below(2) == 0, tb = below(2) == 0;
      const int64_t left_depth = below(depth);
      const Value left = self(self, ta ? inner : rows, ta ? rows : inner, left_depth);
      const Value right = self(self, tb ? columns : inner, tb ? inner : columns, depth - 1 - left_depth);
      return graph.add("matmul", {left, right}, {{"transpose_a", ta}, {"transpose_b", tb}});
    };
    graph.set_outputs({chain(chain, 1 + below(30), 1 + below(30), 1 + below(6))});
    const Graph after = reordered(graph);
    const double scale = 1e-5;
    CHECK(test::difference(ref::evaluate(after, inputs)[0], ref::evaluate(graph, inputs)[0]) <= scale);
    CHECK(after.outputs().size() == 1);
    CHECK(after.type(after.outputs()[0]) == graph.type(graph.outputs()[0]));
  }
}
