#include "onnx/models/open_sizes.h"

#include <doctest/doctest.h>
#include <functional>

#include <millrace/error.h>
#include <millrace/graph.h>

#include "backend/ref/evaluate.h"
#include "onnx/export.h"
#include "ops/build.h"

using namespace millrace;

namespace {

/// y = reshape(x · w, [batch · 2, 3]) + the whole of a slice, x f32[batch, 4].
std::string product_model() {
  Graph graph;
  ops::Build b(graph);
  const Dim batch = Dim::named("batch");
  const Value x = graph.input("x", {f32, {batch, 4}}), w = graph.input("w", {f32, {4, 6}});
  const Value y = b.reshape(b.matmul(x, w), {batch * Dim(2), 3});
  graph.set_outputs({b.add(y, 1)}, {"y"});
  Array weight(f32, {4, 6});
  for (int64_t i = 0; i < weight.count(); ++i) weight.set(i, 0.25 * static_cast<double>(i % 7) - 0.5);
  return onnx::export_model(graph, {.weights = {{1, weight}}});
}

Array counting(const Shape& shape) {
  Array array(f32, shape);
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, 0.1 * static_cast<double>(i));
  return array;
}

}  // namespace

TEST_CASE("open sizes: one graph of any batch gives what one of that batch gives") {
  const std::string bytes = product_model();
  const onnx::Model model = onnx::parse_model(bytes, "m.onnx");
  const onnx::Imported open = onnx::import_open(model, {.inputs = {{"x", {f32, {Dim::named("batch"), 4}}}}});
  CHECK(open.graph.type(open.graph.outputs()[0]).shape == Shape{Dim::named("batch") * Dim(2), 3});
  for (const int64_t batch : {1, 3, 5, 8}) {
    CAPTURE(batch);
    const Array x = counting({batch, 4});
    const Graph fixed = onnx::import_model(model, {.inputs = {{"x", x.type()}}}).graph;
    const Array wanted = ref::evaluate(fixed, std::span(&x, 1))[0];
    const Array given = ref::evaluate(specialise(open.graph, {{"batch", batch}}), std::span(&x, 1))[0];
    REQUIRE(given.type() == wanted.type());
    for (int64_t i = 0; i < wanted.count(); ++i) CHECK(given.at(i) == wanted.at(i));
  }
}

namespace {

/// x f32[batch, 4] with something added that follows from how many rows there are.
onnx::Model with_rows(const std::function<Value(ops::Build& b, const Shape& shape)>& added,
                      std::string& bytes) {
  Graph graph;
  ops::Build b(graph);
  const Shape shape{Dim::named("batch"), 4};
  const Value x = graph.input("x", {f32, shape});
  graph.set_outputs({b.add(x, b.cast(added(b, shape), f32))}, {"y"});
  bytes = onnx::export_model(graph, {});
  return onnx::parse_model(bytes, "m.onnx");
}

Value counted_along(ops::Build& b, const Shape& shape, int64_t axis) {
  return b.graph().add("iota", {}, {{"shape", shape}, {"axis", axis}});
}

}  // namespace

TEST_CASE("open sizes: numbers of rows and how many there are, are known for any batch") {
  const auto numbers = [](ops::Build& b, const Shape& shape) {
    const Value row = counted_along(b, shape, 0), place = counted_along(b, shape, 1);
    const Value count = b.sum(b.broadcast(b.scalar(i64, 1), {shape[0]}), {0}, false);
    const Value x = b.graph().inputs()[0];
    return b.add(b.mul(x, b.cast(count, f32)), b.cast(b.sub(b.mul(row, b.add(place, 3)), place), f32));
  };
  std::string bytes;
  const onnx::Model model = with_rows(numbers, bytes);
  const onnx::Imported open = onnx::import_open(model, {.inputs = {{"x", {f32, {Dim::named("batch"), 4}}}}});
  for (const int64_t batch : {1, 2, 3, 5, 9}) {
    const Array x = counting({batch, 4});
    const Array y = ref::evaluate(specialise(open.graph, {{"batch", batch}}), std::span(&x, 1))[0];
    for (int64_t i = 0; i < y.count(); ++i) {
      const int64_t row = i / 4, place = i % 4;
      CHECK(y.at(i) == doctest::Approx(x.at(i) * static_cast<double>(1 + batch) +
                                       static_cast<double>(row * (place + 3) - place)));
    }
  }
}

TEST_CASE("open sizes: what grows along the rows otherwise than by steps is refused") {
  std::string bytes;
  const auto refused = [&](const auto& added) {
    const onnx::Model model = with_rows(added, bytes);
    CHECK_THROWS_AS(onnx::import_open(model, {.inputs = {{"x", {f32, {Dim::named("batch"), 4}}}}}),
                    InputError);
  };
  refused([](ops::Build& b, const Shape& shape) {
    const Value row = counted_along(b, shape, 0);
    return b.mul(row, row);
  });
  refused([](ops::Build& b, const Shape& shape) {
    return b.binary("less", counted_along(b, shape, 0), counted_along(b, shape, 1));
  });
}

TEST_CASE("open sizes: nothing is open, nothing is merged") {
  const std::string bytes = product_model();
  const onnx::Model model = onnx::parse_model(bytes, "m.onnx");
  const onnx::Imported fixed = onnx::import_open(model, {.inputs = {{"x", {f32, {2, 4}}}}});
  CHECK(fixed.graph.type(fixed.graph.outputs()[0]).shape == Shape{4, 3});
}

TEST_CASE("open sizes: what follows from a size otherwise is refused") {
  // The rows from the fifth on: none of three, one of five.
  Graph graph;
  const Value x = graph.input("x", {f32, {6, 4}});
  graph.set_outputs(
      {graph.add("slice", {x},
                 {{"starts", std::vector<int64_t>{4, 0}}, {"ends", std::vector<int64_t>{6, 4}}})},
      {"y"});
  const std::string bytes = onnx::export_model(graph, {});
  const onnx::Model model = onnx::parse_model(bytes, "m.onnx");
  CHECK_THROWS_AS(onnx::import_open(model, {.inputs = {{"x", {f32, {Dim::named("batch"), 4}}}}}), InputError);
}
