#include "ops/pooling.h"

#include <algorithm>
#include <utility>

#include <millrace/onnx_rule.h>

#include "base/format.h"
#include "ops/convolution.h"

const millrace::Operator& op_avg_pool2d();
const millrace::Operator& op_max_pool2d_values();

namespace millrace::ops {
namespace {

using Ints = std::vector<int64_t>;

int64_t windows_along(int64_t size, int64_t kernel, int64_t before, int64_t after, int64_t stride,
                      std::string_view what, const TypeContext& context) {
  // Then every window contains at least one element.
  if (before >= kernel || after >= kernel)
    context.error(fmt::format("the padding of {} must be smaller than the window ({})", what, kernel));
  if (size < 1 || size + before + after < kernel)
    context.error(
        fmt::format("the window has {} {}, the padded input only {}", kernel, what, size + before + after));
  return (size + before + after - kernel) / stride + 1;
}

/// 0 ≤ a < end as a bool scalar.
Scalar in_range(ScalarBuilder& b, Scalar a, int64_t end) {
  return b.both(b.binary(ScalarOp::greater_equal, a, b.integer(i64, 0)), b.less(a, b.integer(i64, end)));
}

/// How many elements of a window that starts at `start` lie in [0, size).
Scalar overlap(ScalarBuilder& b, Scalar start, int64_t kernel, int64_t size) {
  const Scalar end = b.min(b.add(start, b.integer(i64, kernel)), b.integer(i64, size));
  return b.sub(end, b.max(start, b.integer(i64, 0)));
}

Scalar window_start(ScalarBuilder& b, Scalar window, int64_t stride, int64_t padding) {
  return b.sub(b.mul(window, b.integer(i64, stride)), b.integer(i64, padding));
}

}  // namespace

Pooling pooling(const Shape& x, const Attributes& attributes) {
  const Ints &kernel = attributes.ints("kernel"), &strides = attributes.ints("strides"),
             &pads = attributes.ints("pads");
  Pooling p{};
  p.height = x[2].size();
  p.width = x[3].size();
  p.kernel_h = kernel[0];
  p.kernel_w = kernel[1];
  p.stride_h = strides[0];
  p.stride_w = strides[1];
  p.top = pads[0];
  p.left = pads[1];
  p.bottom = pads[2];
  p.right = pads[3];
  p.out_height = (p.height + p.top + p.bottom - p.kernel_h) / p.stride_h + 1;
  p.out_width = (p.width + p.left + p.right - p.kernel_w) / p.stride_w + 1;
  return p;
}

Shape pooling_result(const Shape& x, const TypeContext& context) {
  if (!context.operands[0].dtype.is_float()) context.error("dtype is not supported");
  if (x.rank() != 4) context.error("the images must have the dimensions [batch, channels, height, width]");
  if (!x[2].is_static() || !x[3].is_static())
    context.error("height and width must be numbers, not named dimensions");
  const Ints &kernel = context.attributes.ints("kernel"), &strides = context.attributes.ints("strides"),
             &pads = context.attributes.ints("pads");
  const int64_t rows = windows_along(x[2].size(), kernel[0], pads[0], pads[2], strides[0], "rows", context);
  const int64_t columns =
      windows_along(x[3].size(), kernel[1], pads[1], pads[3], strides[1], "columns", context);
  return {x[0], x[1], rows, columns};
}

std::vector<Type> pooled_types(const TypeContext& context) {
  const Type& x = context.operands[0];
  return {{x.dtype, pooling_result(x.shape, context)}};
}

std::vector<AttributeSpec> pooling_attributes(std::vector<AttributeSpec> extra) {
  std::vector<AttributeSpec> all = {
      {"kernel", AttributeType::integers, "rows and columns of a window", sizes_range(2, 1)},
      {"strides", Attribute(Ints{1, 1}), "steps down and right", sizes_range(2, 1)},
      {"pads", Attribute(Ints{0, 0, 0, 0}), "padding: top, left, bottom, right", sizes_range(4, 0)}};
  all.insert(all.end(), extra.begin(), extra.end());
  return all;
}

Operator pooling_operator(std::string_view name, std::string_view doc, std::vector<AttributeSpec> extra) {
  Operator op;
  op.name = name;
  op.op_class = OpClass::movement;
  op.window = true;
  op.doc = doc;
  op.attributes = pooling_attributes(std::move(extra));
  return op;
}

Attributes pooling_attributes_of(const Node& node, const Shape* input_shape) {
  Attributes attributes;
  for (const AttributeSpec& spec : pooling_attributes())
    attributes.set(std::string(spec.name), *node.attributes.find(spec.name));
  if (const Attribute* counted = node.attributes.find("count_include_pad"))
    attributes.set("count_include_pad", *counted);
  if (input_shape) attributes.set("input_shape", *input_shape);
  return attributes;
}

Value max_pool2d_gradient(const GradientContext& context) {
  const Shape& x = context.type(context.operands[0]).shape;
  Attributes attributes = pooling_attributes_of(context.node);
  attributes.set("dtype", x[2].size() * x[3].size() <= INT32_MAX ? i32 : i64);
  const Value positions = context.graph.add("max_pool2d_positions", {context.operands[0]}, attributes);
  return context.graph.add("max_pool2d_grad", {context.result_gradients[0], positions},
                           pooling_attributes_of(context.node, &x));
}

bool windows_disjoint(const Node& node) {
  const Ints &kernel = node.attributes.ints("kernel"), &strides = node.attributes.ints("strides");
  return strides[0] >= kernel[0] && strides[1] >= kernel[1];
}

const std::vector<PoolingSample>& pooling_samples() {
  static const std::vector<PoolingSample> samples = [] {
    std::vector<PoolingSample> list = {
        {f32, {2, 3, 6, 8}, {2, 3, 3, 4}, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
        {f32,
         {2, 5, 9, 7},
         {2, 5, 5, 4},
         {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
        {f32, {1, 2, 7, 5}, {1, 2, 6, 5}, {{"kernel", Ints{3, 2}}, {"pads", Ints{1, 0, 0, 1}}}},
        {f32, {1, 1, 1, 1}, {1, 1, 1, 1}, {{"kernel", Ints{1, 1}}}},
        {f32, {0, 2, 4, 4}, {0, 2, 2, 2}, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
        {f64,
         {1, 2, 5, 5},
         {1, 2, 3, 3},
         {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
        {f64, {2, 1, 4, 5}, {2, 1, 1, 2}, {{"kernel", Ints{2, 2}}, {"strides", Ints{3, 3}}}},
        {bf16, {2, 3, 6, 6}, {2, 3, 3, 3}, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
        {f16, {1, 2, 5, 5}, {1, 2, 5, 5}, {{"kernel", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}},
    };
    for (PoolingSample& sample : list)
      for (const AttributeSpec& spec : pooling_attributes())
        if (!sample.attributes.find(spec.name)) sample.attributes.set(std::string(spec.name), *spec.fallback);
    return list;
  }();
  return samples;
}

std::vector<double> pooling_sample_positions(const PoolingSample& sample) {
  const Pooling p = pooling(sample.x, sample.attributes);
  std::vector<double> positions;
  for (int64_t i = 0; i < sample.y.count(); ++i) {
    const int64_t row = i / p.out_width % p.out_height, column = i % p.out_width;
    const int64_t h = std::clamp<int64_t>(row * p.stride_h - p.top + i % p.kernel_h, 0, p.height - 1);
    const int64_t w = std::clamp<int64_t>(column * p.stride_w - p.left + i % p.kernel_w, 0, p.width - 1);
    positions.push_back(static_cast<double>(h * p.width + w));
  }
  return positions;
}

void for_window(ScalarBuilder& b, const Pooling& p, std::span<const Scalar> index,
                const std::function<void(Scalar, Scalar, Scalar)>& f) {
  const Scalar top = window_start(b, index[2], p.stride_h, p.top),
               left = window_start(b, index[3], p.stride_w, p.left);
  // Whether a window can reach over an edge at all is known here.
  const bool edges_h = p.top > 0 || (p.out_height - 1) * p.stride_h + p.kernel_h - p.top > p.height;
  const bool edges_w = p.left > 0 || (p.out_width - 1) * p.stride_w + p.kernel_w - p.left > p.width;
  const Scalar yes = b.integer(boolean, 1);
  for (int64_t i = 0; i < p.kernel_h; ++i) {
    const Scalar row = b.add(top, b.integer(i64, i));
    const Scalar row_inside = edges_h ? in_range(b, row, p.height) : yes;
    for (int64_t j = 0; j < p.kernel_w; ++j) {
      const Scalar column = b.add(left, b.integer(i64, j));
      const Scalar inside = !edges_w  ? row_inside
                            : edges_h ? b.both(row_inside, in_range(b, column, p.width))
                                      : in_range(b, column, p.width);
      f(inside, row, column);
    }
  }
}

void for_windows_of(ScalarBuilder& b, const Pooling& p, std::span<const Scalar> index,
                    const std::function<void(Scalar, Scalar, Scalar)>& f) {
  // The last window that starts at or before the element, and those before it that may still reach it.
  const Scalar row = b.add(index[2], b.integer(i64, p.top)), column = b.add(index[3], b.integer(i64, p.left));
  const Scalar last_row = b.div(row, b.integer(i64, p.stride_h)),
               last_column = b.div(column, b.integer(i64, p.stride_w));
  for (int64_t i = (p.kernel_h - 1) / p.stride_h; i >= 0; --i)
    for (int64_t j = (p.kernel_w - 1) / p.stride_w; j >= 0; --j) {
      const Scalar window_row = b.sub(last_row, b.integer(i64, i));
      const Scalar window_column = b.sub(last_column, b.integer(i64, j));
      const Scalar down = b.sub(row, b.mul(window_row, b.integer(i64, p.stride_h)));
      const Scalar right = b.sub(column, b.mul(window_column, b.integer(i64, p.stride_w)));
      const Scalar exists =
          b.both(in_range(b, window_row, p.out_height), in_range(b, window_column, p.out_width));
      const Scalar reaches =
          b.both(b.less(down, b.integer(i64, p.kernel_h)), b.less(right, b.integer(i64, p.kernel_w)));
      f(b.both(exists, reaches), window_row, window_column);
    }
}

Scalar divide_by_window(ScalarBuilder& b, const Pooling& p, Scalar sum, Scalar row, Scalar column,
                        const Attributes& attributes) {
  if (attributes.flag("count_include_pad"))
    return b.mul(sum, 1.0 / static_cast<double>(p.kernel_h * p.kernel_w));
  const Scalar rows = overlap(b, window_start(b, row, p.stride_h, p.top), p.kernel_h, p.height);
  const Scalar columns = overlap(b, window_start(b, column, p.stride_w, p.left), p.kernel_w, p.width);
  // A window that does not exist has a sum of 0; it must not be divided by 0.
  const Scalar count = b.max(b.mul(rows, columns), b.integer(i64, 1));
  return b.div(sum, b.cast(count, b.dtype(sum)));
}

std::optional<Reduction> pooled_by(const Node& node) {
  if (node.op == &op_avg_pool2d()) return Reduction::mean;
  if (node.op == &op_max_pool2d_values()) return Reduction::max;
  return std::nullopt;
}

std::vector<std::string> onnx_max_pool(const OnnxCall& c) {
  return c.one("MaxPool", c.operands,
               {{"kernel_shape", c.attributes().ints("kernel")},
                {"strides", c.attributes().ints("strides")},
                {"pads", c.attributes().ints("pads")}});
}

}  // namespace millrace::ops
