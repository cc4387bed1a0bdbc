#include <doctest/doctest.h>
#include <vector>

#include <millrace/graph.h>
#include <millrace/operator.h>
#include <millrace/program.h>

#include "backend/ref/evaluate.h"
#include "passes/pass.h"
#include "support/graphs.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

/// A convolution, a product, and attention, which becomes products or stays what it is.
Graph products(DType dtype) {
  Graph graph;
  const Value x = graph.input("x", {dtype, {2, 4, 6, 6}}), w = graph.input("w", {dtype, {3, 4, 3, 3}}),
              a = graph.input("a", {dtype, {5, 40}}), b = graph.input("b", {dtype, {40, 7}}),
              q = graph.input("q", {dtype, {1, 2, 9, 16}});
  const Value y = graph.add("conv2d", {x, w},
                            {{"strides", std::vector<int64_t>{1, 1}},
                             {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                             {"dilations", std::vector<int64_t>{1, 1}},
                             {"groups", int64_t{1}}});
  const Value p = graph.add("matmul", {a, b}, {{"transpose_a", false}, {"transpose_b", false}});
  const Value t = graph.add("attention", {q, q, q}, {{"causal", true}});
  graph.set_outputs({y, p, t});
  return graph;
}

int narrow_products(const Graph& graph) {
  int count = 0;
  for (int i = 0; i < graph.size(); ++i)
    if (arithmetic_of(*graph.node(i).op) == Arithmetic::narrow && graph.node(i).types[0].dtype.bits == 16)
      ++count;
  return count;
}

}  // namespace

TEST_CASE("products in a type without units compute in f32, and give what the reference gives") {
  for (const DType dtype : {f16, bf16}) {
    CAPTURE(dtype.name());
    const Graph graph = products(dtype);
    const std::vector<Array> inputs = test::inputs_for(graph);
    Target target;
    target.name = "none";
    target.fuses = true;
    const Graph wide =
        passes().at("widen-products").run(graph, {.target = target, .precision = "fp32", .evaluate = {}});
    CHECK(narrow_products(graph) == 2);
    CHECK(narrow_products(wide) == 0);
    CHECK(test::difference(ref::evaluate(wide, inputs), ref::evaluate(graph, inputs)) < 1e-2);
    target.fast_bf16 = true;
    const Graph again =
        passes().at("widen-products").run(graph, {.target = target, .precision = "fp32", .evaluate = {}});
    CHECK(narrow_products(again) == (dtype == bf16 ? 2 : 0));
  }
}

TEST_CASE("no product of 16 bits falls back to the reference") {
  for (const DType dtype : {f16, bf16}) {
    CAPTURE(dtype.name());
    const Graph graph = products(dtype);
    const std::vector<Array> inputs = test::inputs_for(graph);
    const std::vector<Array> expected = ref::evaluate(graph, inputs);
    Program program = Program::compile(graph);
    for (const LaunchInfo& launch : program.launches()) {
      CAPTURE(launch.operation);
      CHECK(launch.provider != "ref");
    }
    CHECK(test::difference(test::run(program, inputs), expected) < 1e-2);
  }
}
