#include "session/summary.h"

#include <doctest/doctest.h>

using namespace millrace;

TEST_CASE("a summary counts every weight once, and what depends on weights alone is no row") {
  Graph graph;
  const Value x = graph.input("x", {f32, {2, 3}}), w = graph.input("w", {f32, {3, 3}});
  const Value twice = graph.add("mul", {w, graph.constant(Array::full(f32, {3, 3}, 2))});
  const Value a = graph.add("matmul", {x, twice}), b = graph.add("matmul", {a, twice});
  graph.set_outputs({b, a}, {"b", "a"});
  const GraphSummary summary = summarise(graph, 1);
  REQUIRE(summary.rows.size() == 2);
  CHECK(summary.parameters == 18);
  CHECK(summary.parameter_bytes == 72);
  CHECK(summary.rows[0].parameters == 18);
  CHECK(summary.rows[1].parameters == 0);
  CHECK(summary.rows[0].inputs == std::vector<int>{0});
  CHECK(summary.rows[1].reads == std::vector<int>{0});
  CHECK(summary.rows[0].outputs == std::vector<int>{1});
  CHECK(summary.rows[1].outputs == std::vector<int>{0});
  CHECK(summary.flops == 2 * 2 * 2 * 3 * 3);
  CHECK(summary.rows[0].bytes == 4 * (6 + 9 + 6));
}

TEST_CASE("sizes that nobody gives are 1 for a first dimension, and 64") {
  const std::vector<SessionValue> inputs = {{"a", {f32, {Dim::named("batch"), Dim::named("length")}}},
                                            {"b", {f32, {Dim::named("length")}}}};
  CHECK(example_sizes(inputs, {}) == Bindings{{"batch", 1}, {"length", 64}});
  CHECK(example_sizes(inputs, {{"length", 8}}) == Bindings{{"batch", 1}, {"length", 8}});
}
