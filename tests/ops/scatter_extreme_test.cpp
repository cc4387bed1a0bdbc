// What samples cannot hold: ties, where finite differences do not exist, and large tables.
#include <doctest/doctest.h>

#include <millrace/operator.h>
#include <millrace/program.h>

#include "autodiff/gradient.h"
#include "backend/ref/evaluate.h"
#include "support/graphs.h"
#include "support/random_graph.h"

using namespace millrace;

static Array list(DType dtype, const std::vector<double>& values) {
  return Array::of(dtype, {static_cast<int64_t>(values.size())}, values);
}

TEST_CASE("equal extremes of a base and its updates share the gradient") {
  for (const bool least : {false, true}) {
    Graph graph;
    const Value base = graph.input("base", {f32, {3}}), at = graph.input("at", {i64, {5}}),
                updates = graph.input("updates", {f32, {5}});
    const Value y = graph.add("scatter_extreme", {base, at, updates}, {{"least", least}});
    const Value seed = graph.constant(list(f32, {6, 5, 4}));
    const std::vector<Value> wrt = {base, updates};
    graph.set_outputs(gradients(graph, std::span(&y, 1), std::span(&seed, 1), wrt));
    const double sign = least ? -1 : 1;
    const std::vector<Array> inputs = {list(f32, {sign * 2, sign * 1, sign * 7}), list(i64, {0, 0, 1, 2, -1}),
                                       list(f32, {sign * 2, sign * 2, sign * 3, sign * 5, sign * 9})};
    Program program = Program::compile(graph);
    for (const std::vector<Array>& found : {ref::evaluate(graph, inputs), test::run(program, inputs)}) {
      CHECK(found[0].to_doubles() == std::vector<double>{2, 0, 4});
      CHECK(found[1].to_doubles() == std::vector<double>{2, 2, 5, 0, 0});
    }
  }
}

TEST_CASE("extremes of large tables are those of the reference, with any number of threads") {
  Graph graph;
  const Value base = graph.input("base", {f32, {300000}}), at = graph.input("at", {i64, {200000}}),
              updates = graph.input("updates", {f32, {200000}});
  graph.set_outputs({graph.add("scatter_extreme", {base, at, updates}, {{"least", true}})});
  std::vector<Array> inputs = test::inputs_for(graph);
  for (int64_t i = 0; i < inputs[1].count(); ++i) inputs[1].set_int(i, i * 7919 % 300007 - 3);
  Program program = Program::compile(graph);
  CHECK(program.explain().find("kernels: scatter_extreme") != std::string::npos);
  CHECK(test::run(program, inputs)[0].identical(ref::evaluate(graph, inputs)[0]));
}
