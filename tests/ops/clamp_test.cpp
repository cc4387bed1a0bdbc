#include <doctest/doctest.h>

#include <millrace/operator.h>

#include "autodiff/gradient.h"
#include "backend/ref/evaluate.h"
#include "ops/build.h"

using namespace millrace;

TEST_CASE("the gradient of clamp passes within the bounds, these included") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {5}});
  const Value limited = graph.add("clamp", {x}, {{"low", -0.5}, {"high", 0.75}});
  graph.set_outputs(gradients(graph, b.sum(limited, {}, false), std::span(&x, 1)));
  const std::vector<double> numbers = {-0.6, -0.5, 0, 0.75, 0.8};
  CHECK(ref::evaluate(graph, std::vector<Array>{Array::of(f32, {5}, numbers)})[0].to_doubles() ==
        std::vector<double>{0, 1, 1, 1, 0});
}
