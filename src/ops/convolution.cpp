#include "ops/convolution.h"

#include "base/format.h"

const millrace::Operator& op_conv2d();
const millrace::Operator& op_conv2d_input_grad();
const millrace::Operator& op_conv2d_weight_grad();
const millrace::Operator& op_fused_conv2d();

namespace millrace::ops {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kLargestSize = int64_t{1} << 31;  // of kernels, strides …

void check_channels(const Shape& x, const Shape& w, int64_t groups, const TypeContext& context) {
  if (!x[1].is_static() || !w.is_static())
    context.error(
        "the number of channels and the shape of the weights must be numbers, not named dimensions");
  const int64_t given = x[1].size(), expected = w[1].size();
  if (given != expected * groups)
    context.error(fmt::format("the input has {} channels, the weights expect {}{}", given, expected * groups,
                              groups > 1 ? fmt::format(" ({} groups of {})", groups, expected) : ""));
  if (w[0].size() % groups != 0)
    context.error(fmt::format("{} output channels cannot be divided into {} groups", w[0].size(), groups));
}

int64_t result_size(int64_t size, int64_t kernel, int64_t dilation, int64_t padding, int64_t stride,
                    std::string_view what, const TypeContext& context) {
  if (kernel > kLargestSize) context.error("the kernel is too large");
  const int64_t reach = dilation * (kernel - 1) + 1;
  if (kernel < 1) context.error(fmt::format("the kernel has {} 0", what));
  if (size + padding < reach)
    context.error(fmt::format("the kernel reaches over {} {}, but the padded input has only {}", reach, what,
                              size + padding));
  return (size + padding - reach) / stride + 1;
}

}  // namespace

AttributeRange sizes_range(int count, double least) {
  return {.low = least, .high = kLargestSize, .count = count};
}

Convolution convolution(const Shape& x, const Shape& w, const Attributes& attributes) {
  const Ints &strides = attributes.ints("strides"), &pads = attributes.ints("pads"),
             &dilations = attributes.ints("dilations");
  Convolution c{};
  c.images = x[0].size();
  c.groups = attributes.integer("groups");
  c.in_channels = x[1].size();
  c.out_channels = w[0].size();
  c.in_height = x[2].size();
  c.in_width = x[3].size();
  c.kernel_height = w[2].size();
  c.kernel_width = w[3].size();
  c.stride_h = strides[0];
  c.stride_w = strides[1];
  c.dilation_h = dilations[0];
  c.dilation_w = dilations[1];
  c.top = pads[0];
  c.left = pads[1];
  c.bottom = pads[2];
  c.right = pads[3];
  c.out_height = (c.in_height + c.top + c.bottom - c.dilation_h * (c.kernel_height - 1) - 1) / c.stride_h + 1;
  c.out_width = (c.in_width + c.left + c.right - c.dilation_w * (c.kernel_width - 1) - 1) / c.stride_w + 1;
  return c;
}

double convolution_flops(const Shape& x, const Shape& w, const Attributes& attributes) {
  const Convolution c = convolution(x, w, attributes);
  // Pairs of an output position and a kernel position whose input position is not padding.
  const auto pairs = [](int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t before,
                        int64_t size) {
    int64_t count = 0;
    for (int64_t o = 0; o < out; ++o)
      for (int64_t k = 0; k < kernel; ++k) {
        const int64_t at = o * stride + k * dilation - before;
        if (at >= 0 && at < size) ++count;
      }
    return static_cast<double>(count);
  };
  const int64_t maps = c.images * c.in_channels * (c.out_channels / c.groups);
  return 2 * pairs(c.out_height, c.kernel_height, c.stride_h, c.dilation_h, c.top, c.in_height) *
         pairs(c.out_width, c.kernel_width, c.stride_w, c.dilation_w, c.left, c.in_width) *
         static_cast<double>(maps);
}

Shape convolution_result(const Shape& x, const Shape& w, const TypeContext& context) {
  if (x.rank() != 4) context.error("the input must have the dimensions [batch, channels, height, width]");
  if (w.rank() != 4)
    context.error(
        "the weights must have the dimensions [output channels, input channels / groups, height, width]");
  check_channels(x, w, context.attributes.integer("groups"), context);
  if (!x[2].is_static() || !x[3].is_static())
    context.error("height and width must be numbers, not named dimensions (only the batch may be named)");
  const Ints &strides = context.attributes.ints("strides"), &pads = context.attributes.ints("pads"),
             &dilations = context.attributes.ints("dilations");
  const int64_t height =
      result_size(x[2].size(), w[2].size(), dilations[0], pads[0] + pads[2], strides[0], "rows", context);
  const int64_t width =
      result_size(x[3].size(), w[3].size(), dilations[1], pads[1] + pads[3], strides[1], "columns", context);
  return {x[0], w[0], height, width};
}

std::vector<AttributeSpec> convolution_attributes() {
  return {{"strides", Attribute(Ints{1, 1}), "steps down and right", sizes_range(2, 1)},
          {"pads", Attribute(Ints{0, 0, 0, 0}), "zeros around the input: top, left, bottom, right",
           sizes_range(4, 0)},
          {"dilations", Attribute(Ints{1, 1}), "distance of neighbouring kernel elements", sizes_range(2, 1)},
          {"groups",
           Attribute(int64_t{1}),
           "channels are split into so many independent convolutions",
           {.low = 1, .high = (1 << 20) - 1}}};
}

Operator convolution_operator(std::string_view name, std::string_view doc) {
  Operator op;
  op.name = name;
  op.op_class = OpClass::heavy;
  op.doc = doc;
  op.min_operands = op.max_operands = 2;
  op.attributes = convolution_attributes();
  op.arithmetic = Arithmetic::narrow;
  op.tolerance = {.f32 = 1e-4, .f64 = 1e-11, .half = 3e-2};
  return op;
}

Attributes convolution_attributes_of(const Node& node, std::pair<std::string, Attribute> extra) {
  Attributes attributes;
  for (const AttributeSpec& spec : convolution_attributes())
    attributes.set(std::string(spec.name), *node.attributes.find(spec.name));
  if (!extra.first.empty()) attributes.set(std::move(extra.first), std::move(extra.second));
  return attributes;
}

const std::vector<ConvolutionSample>& convolution_samples() {
  static const std::vector<ConvolutionSample> samples = {
      {f32, {2, 3, 9, 7}, {5, 3, 3, 3}, {2, 5, 9, 7}, {{"pads", Ints{1, 1, 1, 1}}}},
      {f32, {2, 4, 8, 9}, {6, 4, 3, 3}, {2, 6, 4, 5}, {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}}},
      {f32,
       {1, 4, 10, 11},
       {8, 2, 3, 2},
       {1, 8, 4, 11},
       {{"pads", Ints{0, 1, 2, 0}}, {"strides", Ints{3, 1}}, {"groups", int64_t{2}}}},
      {f32,
       {2, 6, 9, 9},
       {6, 1, 3, 3},
       {2, 6, 7, 7},
       {{"groups", int64_t{6}}, {"dilations", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
      {f32, {3, 8, 5, 5}, {16, 8, 1, 1}, {3, 16, 5, 5}, {}},
      {f32, {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {}},
      {f32, {0, 2, 5, 5}, {3, 2, 3, 3}, {0, 3, 3, 3}, {}},
      {f64, {1, 2, 5, 4}, {3, 2, 3, 2}, {1, 3, 5, 3}, {{"pads", Ints{1, 0, 1, 0}}}},
      {f64,
       {2, 2, 5, 6},
       {4, 1, 2, 3},
       {2, 4, 2, 4},
       {{"strides", Ints{3, 1}},
        {"dilations", Ints{1, 2}},
        {"groups", int64_t{2}},
        {"pads", Ints{0, 1, 1, 1}}}},
      {bf16, {2, 16, 6, 6}, {8, 16, 3, 3}, {2, 8, 6, 6}, {{"pads", Ints{1, 1, 1, 1}}}},
      {f16, {1, 4, 5, 5}, {3, 4, 3, 3}, {1, 3, 2, 2}, {{"strides", Ints{2, 2}}}},
  };
  return samples;
}

std::optional<ConvolutionPart> convolution_part(const Node& node) {
  if (node.op == &op_conv2d() || node.op == &op_fused_conv2d()) return ConvolutionPart::forward;
  if (node.op == &op_conv2d_input_grad()) return ConvolutionPart::input_gradient;
  if (node.op == &op_conv2d_weight_grad()) return ConvolutionPart::weight_gradient;
  return std::nullopt;
}

}  // namespace millrace::ops
