// What the 2-D convolution and its two gradients share: geometry, checks, samples.
#pragma once

#include <millrace/operator.h>

namespace millrace::ops {

/// The convolution y = conv2d(x, w) itself (alone or fused_conv2d's), or one of its gradients, of the
/// operands (w, dy) or (x, dy).
enum class ConvolutionPart { forward, input_gradient, weight_gradient };
/// nullopt for any other operator.
std::optional<ConvolutionPart> convolution_part(const Node& node);

/// Sizes of a convolution y = conv2d(x, w): x is [n, groups·ci, h, w], w is [groups·co, ci, kh, kw].
struct Convolution {
  int64_t images, groups, in_channels, out_channels;  // channels of all groups together
  int64_t in_height, in_width, out_height, out_width, kernel_height, kernel_width;
  int64_t stride_h, stride_w, dilation_h, dilation_w, top, left, bottom, right;
};

/// The geometry of a node of conv2d, conv2d_input_grad or conv2d_weight_grad from the shapes of x and w,
/// which must fit (the type rules have checked them).
Convolution convolution(const Shape& x, const Shape& w, const Attributes& attributes);

/// Floating-point operations of conv2d or of one of its gradients: two for each product of an element inside
/// the input with one of the kernel.
double convolution_flops(const Shape& x, const Shape& w, const Attributes& attributes);

/// The shape of conv2d(x, w); throws through `context` when the shapes or attributes do not fit.
Shape convolution_result(const Shape& x, const Shape& w, const TypeContext& context);

/// Of an attribute of a convolution or a pooling: `count` numbers from `least` to 2³¹, whose products stay
/// far below overflow.
AttributeRange sizes_range(int count, double least);

/// strides, pads, dilations and groups with their defaults.
std::vector<AttributeSpec> convolution_attributes();
/// conv2d or one of its gradients: of two operands, with those attributes.
Operator convolution_operator(std::string_view name, std::string_view doc);
/// The convolution attributes of a node (without input_shape or weight_shape), and `extra`.
Attributes convolution_attributes_of(const Node& node, std::pair<std::string, Attribute> extra = {});

/// Cases of shapes and attributes that all three operators are tried on.
struct ConvolutionSample {
  DType dtype;
  Shape x, w, y;
  Attributes attributes;
};
const std::vector<ConvolutionSample>& convolution_samples();

}  // namespace millrace::ops
