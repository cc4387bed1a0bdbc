#include <cmath>
#include <doctest/doctest.h>

#include "autodiff/gradient.h"
#include "backend/ref/evaluate.h"

using namespace millrace;

TEST_CASE("cross-entropy of huge logits is finite, and a target that is no class gives NaN") {
  Graph graph;
  const Value x = graph.input("x", {f32, {4, 3}}), t = graph.input("t", {i64, {4}});
  const Value loss = graph.add("cross_entropy", {x, t}, {{"reduction", std::string("none")}});
  graph.set_outputs({loss});
  const Array inputs[] = {
      Array::of(f32, {4, 3}, std::vector<double>{3e38, -3e38, 0, 0, -INFINITY, 0, 1, 2, 3, 1, 2, 3}),
      Array::of(i64, {4}, std::vector<double>{0, 0, 3, -1})};
  const Array out = ref::evaluate(graph, inputs)[0];
  CHECK(out.at(0) == 0);
  CHECK(out.at(1) == doctest::Approx(std::log(2.0)));
  CHECK(std::isnan(out.at(2)));
  CHECK(std::isnan(out.at(3)));
}

TEST_CASE("losses of half-precision logits are f32, and their gradients half again") {
  for (const DType dtype : {bf16, f16}) {
    Graph graph;
    const Value x = graph.input("x", {dtype, {8, 1000}}), t = graph.input("t", {i64, {8}});
    const Value loss = graph.add("cross_entropy", {x, t});
    const Value dx = gradients(graph, loss, std::span(&x, 1))[0];
    graph.set_outputs({loss, dx});
    const Array inputs[] = {Array(dtype, {8, 1000}), Array(i64, {8})};
    const std::vector<Array> out = ref::evaluate(graph, inputs);
    CHECK(out[0].dtype() == f32);
    CHECK(out[0].at(0) == doctest::Approx(std::log(1000.0)));
    CHECK(out[1].dtype() == dtype);
    CHECK(out[1].at(0) == doctest::Approx(-0.999 / 8).epsilon(1e-2));
    CHECK(out[1].at(1) == doctest::Approx(0.001 / 8).epsilon(1e-2));
  }
}
