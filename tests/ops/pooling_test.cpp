#include <cmath>
#include <doctest/doctest.h>

#include "backend/ref/evaluate.h"
#include "backend/ref/registry.h"

using namespace millrace;

TEST_CASE("max pooling takes the first NaN, and the first element of a window of only −∞") {
  const double inf = INFINITY, nan = NAN;
  Graph graph;
  const Value x = graph.input("x", {f32, {1, 1, 2, 6}});
  const Value y = graph.add(
      "max_pool2d", {x}, {{"kernel", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  graph.set_outputs({y, {y.node, 1}});
  const Array input = Array::of(f32, {1, 1, 2, 6},
                                std::vector<double>{-inf, -inf, 1, 3, nan, 1,  //
                                                    -inf, -inf, 3, 2, nan, 5});
  const std::vector<Array> out = ref::evaluate(graph, std::span(&input, 1));
  CHECK(out[0].at(0) == -inf);
  CHECK(out[0].at(1) == 3);
  CHECK(std::isnan(out[0].at(2)));
  CHECK(out[1].to_doubles() == std::vector<double>{0, 3, 4});
  const Graph& body = *graph.node(y).body;
  const Array values = ref::interpret_element_body(body.node(body.outputs()[0]), std::span(&input, 1))[0];
  CHECK(std::isnan(values.at(2)));
  const Array positions = ref::interpret_element_body(body.node(body.outputs()[1]), std::span(&input, 1))[0];
  CHECK(positions.to_doubles() == std::vector<double>{0, 3, 4});
}
