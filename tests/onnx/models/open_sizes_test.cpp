#include "onnx/models/open_sizes.h"

#include <doctest/doctest.h>

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
