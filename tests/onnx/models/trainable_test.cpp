#include "onnx/models/trainable.h"

#include <doctest/doctest.h>
#include <limits>

#include <millrace/graph.h>

#include "onnx/export.h"
#include "onnx/writer.h"
#include "ops/build.h"

using namespace millrace;

namespace {

Array filled(const Shape& shape, double value) { return Array::full(f32, shape, value); }

}  // namespace

TEST_CASE("trainable: weights are what products, norms and their results meet") {
  Graph graph;
  ops::Build b(graph);
  const Dim batch = Dim::named("batch");
  std::map<int, Array> weights;
  const auto weight = [&](const char* name, const Array& array) {
    weights[static_cast<int>(graph.inputs().size())] = array;
    return graph.input(name, array.type());
  };
  const Value x = graph.input("x", {f32, {batch, 4}});
  const Value mean = weight("mean", filled({4}, 0.5));
  const Value w = weight("w", filled({4, 6}, 0.1)), bias = weight("bias", filled({6}, 0));
  const Value scale = weight("scale", filled({6}, 2)), one = weight("one", filled({1}, 0.5));
  const Value mask = weight("mask", filled({6}, -std::numeric_limits<double>::infinity()));
  const Value number = weight("number", Array::scalar(f32, 3)), last = weight("last", filled({6, 1}, 0.1));
  const Value last_bias = weight("last_bias", filled({1}, 0));
  Value y = b.add(b.matmul(b.sub(x, mean), w), bias);
  y = b.mul(b.mul(y, scale), one);
  y = b.mul(b.binary("maximum", y, mask), number);
  y = b.add(b.matmul(y, last), last_bias);
  graph.set_outputs({y}, {"y"});
  const std::string bytes = onnx::export_model(graph, {.weights = weights});
  const onnx::Model model = onnx::parse_model(bytes, "m.onnx");
  onnx::ImportOptions options{.inputs = {{"x", {f32, {batch, 4}}}}};
  options.learning.emplace().outputs = {"y"};
  const onnx::Trainable found = onnx::trainable(model, options);
  CHECK(found.parameters == std::vector<std::string>{"w", "bias", "scale", "last", "last_bias"});
  CHECK(found.statistics.empty());
}

TEST_CASE("trainable: running statistics of batch norms are no parameters") {
  onnx::GraphWriter writer(17);
  writer.input("x", {f32, {Dim::named("batch"), 3}});
  for (const char* name : {"weight", "bias", "running_mean", "running_var"})
    writer.weight(name, filled({3}, 1));
  writer.output("y", {f32, {Dim::named("batch"), 3}});
  writer.named_node(
      "Identity", {writer.node("BatchNormalization", {"x", "weight", "bias", "running_mean", "running_var"})},
      "y");
  WireWriter file;
  file.varint(1, 8).message(7, writer.finish("norm"));
  file.message(8, WireWriter().bytes(1, "").varint(2, 17));
  const std::string bytes = file.text();
  const onnx::Model model = onnx::parse_model(bytes, "m.onnx");
  onnx::ImportOptions options{.inputs = {{"x", {f32, {Dim::named("batch"), 3}}}}};
  options.learning.emplace().outputs = {"y"};
  const onnx::Trainable found = onnx::trainable(model, options);
  CHECK(found.parameters == std::vector<std::string>{"weight", "bias"});
  CHECK(found.statistics == std::vector<std::string>{"running_mean", "running_var"});
  // In training the graph says what the batch's statistics are.
  options.learning->training = true;
  options.learning->inputs = {"weight", "bias", "running_mean", "running_var"};
  const onnx::Imported training = onnx::import_model(model, [&] {
    onnx::ImportOptions fixed = options;
    fixed.inputs["x"].shape = {5, 3};
    return fixed;
  }());
  REQUIRE(training.norms.size() == 1);
  CHECK(training.norms[0].mean == "running_mean");
  CHECK(training.norms[0].variance == "running_var");
  CHECK(training.norms[0].momentum == doctest::Approx(0.1));
  CHECK(training.graph.outputs().size() == 4);
}
