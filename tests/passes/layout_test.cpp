// Layouts: transposes that move nothing.
#include <algorithm>
#include <doctest/doctest.h>

#include <millrace/program.h>

#include "autodiff/gradient.h"
#include "backend/ref/evaluate.h"
#include "support/graphs.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

/// Runs the graph on cpu with random inputs, compares with ref, and returns explain()'s text.
std::string checked(const Graph& graph) {
  const std::vector<Array> inputs = test::inputs_for(graph);
  Program program = Program::compile(graph);
  CHECK(test::difference(test::run(program, inputs), ref::evaluate(graph, inputs)) < 2e-5);
  return program.explain();
}

int64_t lines_with(const std::string& text, std::string_view word) {
  int64_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("attention between separate projections copies no heads, forward or backward") {
  Graph graph;
  const int64_t batch = 2, length = 40, heads = 3, width = 8;
  std::vector<Value> wrt, parts;
  for (int i = 0; i < 3; ++i) {
    const Value x = graph.input("x", {f32, {batch * length, 16}}),
                w = graph.input("w", {f32, {16, heads * width}});
    wrt.push_back(w);
    const Value y =
        graph.add("reshape", {graph.add("matmul", {x, w})}, {{"shape", Shape{batch, length, heads, width}}});
    parts.push_back(graph.add("transpose", {y}, {{"permutation", std::vector<int64_t>{0, 2, 1, 3}}}));
  }
  const Value mixed = graph.add("attention", parts, {{"causal", true}});
  const Value back = graph.add("transpose", {mixed}, {{"permutation", std::vector<int64_t>{0, 2, 1, 3}}});
  const Value rows = graph.add("reshape", {back}, {{"shape", Shape{batch * length, heads * width}}});
  const Value y = graph.add("matmul", {rows, graph.input("w", {f32, {heads * width, 5}})});
  const Value seed = graph.input("g", graph.type(y));
  std::vector<Value> outputs = {y};
  for (const Value& g : gradients(graph, std::span(&y, 1), std::span(&seed, 1), wrt)) outputs.push_back(g);
  graph.set_outputs(outputs);
  const std::string text = checked(graph);
  CHECK(lines_with(text, "kernels: attention") == 2);
  CHECK(lines_with(text, "fused(transpose") == 0);
  CHECK(lines_with(text, "copy") == 0);
}

TEST_CASE("a transpose that somebody reads as rows is still made") {
  Graph graph;
  const Value x = graph.input("x", {f32, {4, 6, 10}});
  const Value w = graph.input("w", {f32, {4, 6, 7}});
  const Value t = graph.add("transpose", {x}, {{"permutation", std::vector<int64_t>{0, 2, 1}}});
  const Value flat = graph.add("reshape", {t}, {{"shape", Shape{40, 6}}});
  graph.set_outputs({graph.add("matmul", {t, w}), flat, t,
                     graph.add("transpose", {graph.add("matmul", {t, w})},
                               {{"permutation", std::vector<int64_t>{2, 0, 1}}})});
  checked(graph);
}
