#include <millrace/onnx_rule.h>

#include "ops/registry.h"

using namespace millrace;

namespace {

/// The same filter: antialiased, what lies outside left out. ONNX does not say how it is rounded; ONNX
/// Runtime's results differ by at most 1.
std::vector<std::string> onnx_resize(const OnnxCall& c) {
  const Shape& from = c.types[0].shape;
  const int rank = from.rank();
  const std::vector<int64_t> sizes{c.attributes().integer("height"), c.attributes().integer("width")};
  const OnnxAttributes attributes{{"mode", "linear"},
                                  {"antialias", int64_t{1}},
                                  {"exclude_outside", int64_t{1}},
                                  {"coordinate_transformation_mode", "half_pixel"},
                                  {"axes", std::vector<int64_t>{2, 3}}};
  const auto resized = [&](const std::string& x) {
    return c.onnx.node("Resize", {x, "", "", c.onnx.ints(sizes)}, attributes);
  };
  if (rank == 4) return {resized(c.operands[0])};
  // Runtimes do it for four dimensions.
  const std::string four = c.onnx.node(
      "Reshape", {c.operands[0], c.onnx.ints({1, -1, from[rank - 2].size(), from[rank - 1].size()})});
  const std::string large = resized(four);
  return c.one("Reshape", {large, c.onnx.shape_of(c.node.types[0].shape)});
}

}  // namespace

MILLRACE_OPERATOR(resize) {
  Operator op;
  op.name = "resize";
  op.op_class = OpClass::heavy;
  op.doc =
      "Pictures [..., height, width] of u8 brought to another size as Pillow's Image.resize(BILINEAR): a "
      "triangle "
      "filter, widened where the picture becomes smaller (antialiased), first across and then down, each "
      "rounded to "
      "u8, with weights of 22 bits. The same bytes as the data loader gives.";
  constexpr int64_t most = 65535;
  op.attributes = {{"height", AttributeType::integer, "of the result", {.low = 1, .high = most}},
                   {"width", AttributeType::integer, "of the result", {.low = 1, .high = most}}};
  op.types = [](const TypeContext& c) {
    const Type& x = c.operands[0];
    if (x.dtype != u8) c.error("only pictures of u8 are resized");
    if (x.shape.rank() < 2) c.error("pictures end in height and width");
    Shape shape = x.shape;
    for (const int back : {2, 1}) {
      Dim& side = shape[shape.size() - static_cast<size_t>(back)];
      if (!side.is_static()) c.error("height and width must be numbers, not named dimensions");
      if (side.size() < 1 || side.size() > most) c.error("pictures have sides of 1 to 65535");
      side = c.attributes.integer(back == 2 ? "height" : "width");
    }
    return std::vector<Type>{{u8, shape}};
  };
  op.differentiable = false;
  op.flops = [](const Graph&, const Node&) { return 0.0; };  // integers
  const auto sample = [&](const Shape& shape, int64_t height, int64_t width) {
    op.samples.push_back({.operands = {{u8, shape}},
                          .attributes = {{"height", height}, {"width", width}},
                          .int_low = 0,
                          .int_high = 255});
  };
  sample({2, 3, 37, 50}, 16, 23);
  sample({3, 5, 7}, 40, 33);
  sample({1, 1, 64, 48}, 64, 17);
  sample({4, 19, 20}, 5, 20);
  sample({9, 9}, 9, 9);
  sample({1, 1}, 3, 2);
  sample({6, 300}, 2, 1);
  sample({0, 3, 8, 8}, 4, 4);
  sample({17, 3, 33, 31}, 8, 8);
  op.onnx = {"Resize"};
  op.onnx_rule = onnx_resize;
  op.onnx_opset = 18;  // antialias
  return op;
}
