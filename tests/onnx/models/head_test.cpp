#include "onnx/models/head.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/wire.h"
#include "onnx/writer.h"

using namespace millrace;

namespace {

/// x f32[3, 4] → hidden = Relu(x) → Product(operands) → Softmax → y.
onnx::Model model_with_head(const std::string& product, const std::vector<std::string>& operands,
                            std::string& bytes) {
  onnx::GraphWriter writer(17);
  writer.input("x", {f32, {3, 4}});
  writer.weight("before", Array::full(f32, {2, 3}, 1));
  writer.weight("behind", Array::full(f32, {4, 2}, 1));
  writer.output("y", {f32, {}});
  writer.named_node("Relu", {"x"}, "hidden");
  writer.named_node(product, operands, "logits");
  writer.named_node("Softmax", {"logits"}, "y");
  WireWriter file;
  file.varint(1, 8).message(7, writer.finish("head"));
  file.message(8, WireWriter().bytes(1, "").varint(2, 17));
  bytes = file.text();
  return onnx::parse_model(bytes, "m.onnx");
}

}  // namespace

TEST_CASE("a head is the last product, given features and not weights") {
  std::string bytes;
  const onnx::Model usual = model_with_head("MatMul", {"hidden", "behind"}, bytes);
  const onnx::End end = onnx::logits_of(usual);
  CHECK(end.value == "logits");
  CHECK(end.note.find("its Softmax at the end is left out") != std::string::npos);
  CHECK(onnx::features_of(usual, end.value).value == "hidden");
  // Weights · features is no layer that another could stand for.
  const onnx::Model turned = model_with_head("MatMul", {"before", "hidden"}, bytes);
  CHECK_THROWS_WITH_AS(onnx::features_of(turned, "logits"), doctest::Contains("its head cannot be told"),
                       InputError);
}
