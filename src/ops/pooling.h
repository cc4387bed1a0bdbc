// What the pooling operators share: geometry, checks, samples, and index arithmetic of their element bodies.
#pragma once

#include <millrace/operator.h>

namespace millrace::ops {

/// Windows over images [batch, channels, height, width].
struct Pooling {
  int64_t height, width, out_height, out_width;
  int64_t kernel_h, kernel_w, stride_h, stride_w, top, left, bottom, right;
};

/// The geometry of a pooling node over images of shape `x`, which must fit (the type rules have checked it).
Pooling pooling(const Shape& x, const Attributes& attributes);

/// The shape of the pooled images of shape `x`; throws through `context` when the first operand is no float,
/// or shape or attributes do not fit.
Shape pooling_result(const Shape& x, const TypeContext& context);
/// Type rule of what gives a number for each window.
std::vector<Type> pooled_types(const TypeContext& context);

/// kernel, strides and pads, and `extra`.
std::vector<AttributeSpec> pooling_attributes(std::vector<AttributeSpec> extra = {});
/// A movement that loads windows, with those attributes.
Operator pooling_operator(std::string_view name, std::string_view doc, std::vector<AttributeSpec> extra = {});
/// Those of a node, with input_shape when one is given.
Attributes pooling_attributes_of(const Node& node, const Shape* input_shape = nullptr);

/// The gradient of max_pool2d, and of its values alone, with respect to the images.
Value max_pool2d_gradient(const GradientContext& context);

/// Whether no two windows of a node share an element.
bool windows_disjoint(const Node& node);

/// ONNX's MaxPool.
std::vector<std::string> onnx_max_pool(const OnnxCall& call);

/// Cases of dtypes, shapes (input, pooled) and attributes that all pooling operators are tried on.
struct PoolingSample {
  DType dtype;
  Shape x, y;
  Attributes attributes;
};
const std::vector<PoolingSample>& pooling_samples();
/// Positions for a sample's windows: some element of each.
std::vector<double> pooling_sample_positions(const PoolingSample& sample);

/// For element bodies over the pooled images: calls f(inside, row, column) for every element of the window of
/// (row, column) of `index`; `inside` (bool) tells elements from padding. Static bounds leave no scalar code
/// behind.
void for_window(ScalarBuilder& b, const Pooling& p, std::span<const Scalar> index,
                const std::function<void(Scalar inside, Scalar row, Scalar column)>& f);

/// For element bodies over the images: calls f(inside, window row, window column) for every window that may
/// contain the element at `index`; where `inside` (bool) does not hold, there is no such window.
void for_windows_of(ScalarBuilder& b, const Pooling& p, std::span<const Scalar> index,
                    const std::function<void(Scalar inside, Scalar row, Scalar column)>& f);

/// Mean or max, of a node of avg_pool2d or max_pool2d_values; nullopt for all others.
std::optional<Reduction> pooled_by(const Node& node);

/// The sum of the window at (row, column) divided by its number of elements, by attribute count_include_pad.
Scalar divide_by_window(ScalarBuilder& b, const Pooling& p, Scalar sum, Scalar row, Scalar column,
                        const Attributes& attributes);

}  // namespace millrace::ops
