#include <doctest/doctest.h>

#include <millrace/operator.h>

#include "backend/ref/evaluate.h"
#include "passes/pass.h"

using namespace millrace;

TEST_CASE("large constants are one where all of their bytes are equal, not some") {
  const Shape shape{100, 100};
  const Array first = Array::full(f32, shape, 0.5);
  Array other = Array::full(f32, shape, 0.5);
  other.set(3, 1);
  Graph graph;
  const Value a = graph.constant(first), b = graph.constant(Array::full(f32, shape, 0.5)),
              c = graph.constant(other);
  const Value x = graph.input("x", {f32, shape});
  graph.set_outputs({graph.add("mul", {x, a}), graph.add("mul", {x, b}), graph.add("mul", {x, c})});
  Target target;
  const Graph common = eliminate_common(graph, {target, "fp32", ref::evaluate_node});
  CHECK(common.outputs()[0] == common.outputs()[1]);
  CHECK(common.outputs()[0] != common.outputs()[2]);
}
