#include "trace/inline.h"

#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/tensor.h>

#include "ops/build.h"

using namespace millrace;

namespace {

Array counted_up(const Type& type, double step = 1) {
  Array array(type);
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, step * static_cast<double>(i));
  return array;
}

/// x[rows, columns], y[rows, 2] → x + 1 and the sums of each row of y, in the shape of x.
Graph named_graph() {
  Graph graph;
  ops::Build b(graph);
  const Shape wide{Dim::named("rows"), Dim::named("columns")};
  const Value x = graph.input("x", {f32, wide}), y = graph.input("y", {f32, {Dim::named("rows"), 2}});
  graph.set_outputs({b.add(x, b.broadcast(graph.constant(Array::full(f32, {1, 1}, 1)), wide)),
                     b.broadcast(b.sum(y, {1}, true), wide)},
                    {"more", "sums"});
  return graph;
}

}  // namespace

TEST_CASE("a graph's named dimensions are those of the tensors that it is inlined with") {
  const Graph graph = named_graph();
  for (const int64_t rows : {3, 1}) {
    const Tensor inputs[] = {counted_up({f32, {rows, 4}}), counted_up({f32, {rows, 2}}, 10)};
    const std::vector<Tensor> results = trace::inline_graph(graph, inputs);
    REQUIRE(results.size() == 2);
    REQUIRE(results[0].shape() == Shape{rows, 4});
    REQUIRE(results[1].shape() == Shape{rows, 4});
    const Array more = results[0].to_array(), sums = results[1].to_array();
    for (int64_t i = 0; i < 4 * rows; ++i) {
      const int64_t row = i / 4;
      CHECK(more.at(i) == static_cast<double>(i + 1));
      CHECK(sums.at(i) == static_cast<double>(40 * row + 10));
    }
  }
}

TEST_CASE("names that the tensors have, too, stay") {
  const Shape rows{Dim::named("rows"), 4};
  const Tensor inputs[] = {Tensor::symbol("a", {f32, rows}),
                           Tensor::symbol("b", {f32, {Dim::named("rows"), 2}})};
  CHECK(trace::inline_graph(named_graph(), inputs)[1].shape() == rows);
}

TEST_CASE("tensors that are not those of a graph's inputs are named, with both types") {
  const Graph graph = named_graph();
  const auto refusal = [&](std::vector<Tensor> inputs) {
    try {
      (void)trace::inline_graph(graph, inputs);
    } catch (const TypeError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Tensor x(counted_up({f32, {3, 4}})), y(counted_up({f32, {3, 2}}));
  CHECK(refusal({x, y}).empty());
  CHECK(refusal({x}).find("1 tensors for the 2 inputs") != std::string::npos);
  CHECK(refusal({x, y, y}).find("3 tensors for the 2 inputs") != std::string::npos);
  CHECK(refusal({Tensor(counted_up({i64, {3, 4}})), y}).find("'x' is i64[3, 4], not f32[") !=
        std::string::npos);
  CHECK(refusal({Tensor(counted_up({f32, {3}})), y}).find("'x' is f32[3], not f32[") != std::string::npos);
  CHECK(refusal({Tensor(counted_up({f32, {3, 4, 1}})), y}).find("'x' is f32[3, 4, 1]") != std::string::npos);
  CHECK(refusal({x, Tensor(counted_up({f32, {3, 3}}))}).find("'y' is f32[3, 3]") != std::string::npos);
  // One name, two sizes.
  CHECK(refusal({x, Tensor(counted_up({f32, {4, 2}}))}).find("'y' is f32[4, 2]") != std::string::npos);
  CHECK(refusal({Tensor::symbol("x", {f32, {Dim::named("other"), 4}}), y}).find("'x' is f32[other, 4]") !=
        std::string::npos);
}

TEST_CASE("a dimension that is a multiple of a name, or of two, takes no number") {
  for (const Dim& wanted : {Dim(2) * Dim::named("rows"), Dim::named("rows") * Dim::named("columns")}) {
    CAPTURE(wanted.str());
    Graph graph;
    const Value x = graph.input("x", {f32, {wanted}});
    graph.set_outputs({graph.add("neg", {x})});
    const Tensor six(counted_up({f32, {6}})), same = Tensor::symbol("same", {f32, {wanted}});
    CHECK_THROWS_AS((void)trace::inline_graph(graph, {&six, 1}), TypeError);
    CHECK(trace::inline_graph(graph, {&same, 1})[0].shape() == Shape{wanted});
  }
}

TEST_CASE("random operators of an inlined graph draw anew each time") {
  Graph graph;
  const Value key = graph.input("key", {i64, {2}});
  graph.set_outputs({graph.add("random_uniform", {key}, {{"shape", Shape{64}}, {"stream", int64_t{0}}})});
  const Tensor given(counted_up({i64, {2}}));
  const auto draw = [&] { return trace::inline_graph(graph, {&given, 1})[0].to_array(); };
  const Array one = draw(), other = draw();
  CHECK(!one.identical(other));
}
