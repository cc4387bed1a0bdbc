#include <algorithm>

#include <millrace/onnx_rule.h>

#include "ops/build.h"
#include "ops/registry.h"
#include "ops/rows.h"

using namespace millrace;

namespace {

std::vector<Type> pad_types(const TypeContext& c) {
  const Type& x = c.operands[0];
  const std::vector<int64_t>&low = c.attributes.ints("low"), &high = c.attributes.ints("high"),
        &interior = c.attributes.ints("interior");
  const auto rank = static_cast<size_t>(x.shape.rank());
  if (low.size() != rank || high.size() != rank || (interior.size() != rank && !interior.empty()))
    c.error("low, high and interior need one number for each axis");
  Shape shape;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t between = interior.empty() ? 0 : interior[d];
    if (low[d] == 0 && high[d] == 0 && between == 0) {
      shape.push_back(x.shape[d]);
      continue;
    }
    if (!x.shape[d].is_static()) c.error("a named dimension cannot be padded");
    const int64_t size = x.shape[d].size();
    int64_t inner = 0;
    if (__builtin_mul_overflow(std::max<int64_t>(size - 1, 0), between, &inner) || inner >> 60)
      c.error("the result is too large");
    shape.push_back(low[d] + high[d] + size + inner);
  }
  return {{x.dtype, shape}};
}

int64_t interior_of(const Node& node, size_t d) {
  const std::vector<int64_t>& interior = node.attributes.ints("interior");
  return interior.empty() ? 0 : interior[d];
}

Scalar pad_element(ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
  const std::vector<int64_t>&low = c.node.attributes.ints("low"), &high = c.node.attributes.ints("high");
  Scalar inside = b.constant(boolean, 1);
  std::vector<Scalar> at(index.begin(), index.end());
  for (size_t d = 0; d < index.size(); ++d) {
    const int64_t stride = interior_of(c.node, d) + 1;
    if (low[d] == 0 && high[d] == 0 && stride == 1) continue;
    const Scalar zero = b.integer(i64, 0), step = b.integer(i64, stride);
    const Scalar offset = b.sub(index[d], b.integer(i64, low[d]));
    if (low[d] > 0) inside = b.both(inside, b.binary(ScalarOp::greater_equal, offset, zero));
    if (stride > 1) inside = b.both(inside, b.equal(b.binary(ScalarOp::rem, offset, step), zero));
    at[d] = stride > 1 ? b.div(offset, step) : offset;
    inside = b.both(inside, b.less(at[d], b.integer(i64, c.operands[0].shape[d].size())));
  }
  return b.load_if(inside, 0, at, b.constant(c.operands[0].dtype, c.node.attributes.number("value")));
}

std::vector<Value> pad_gradient(const GradientContext& c) {
  const Shape& from = c.type(c.operands[0]).shape;
  const std::vector<int64_t> starts = c.node.attributes.ints("low");
  std::vector<int64_t> ends, steps;
  for (size_t d = 0; d < from.size(); ++d) {
    steps.push_back(interior_of(c.node, d) + 1);
    const int64_t size = from[d].size();
    ends.push_back(size == 0 ? starts[d] : starts[d] + (size - 1) * steps[d] + 1);
  }
  return {
      c.graph.add("slice", {c.result_gradients[0]}, {{"starts", starts}, {"ends", ends}, {"steps", steps}})};
}

/// ONNX pads before and behind, and takes away where it is told a number below 0. What stands between
/// elements is padded behind each as a row of its own.
std::vector<std::string> as_onnx(const OnnxCall& c) {
  const Attributes& attributes = c.attributes();
  std::vector<int64_t> pads = attributes.ints("low"), high = attributes.ints("high");
  const std::string value = c.onnx.constant(Array::scalar(c.types[0].dtype, attributes.number("value")));
  std::string x = c.operands[0];
  Shape shape = c.types[0].shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t between = interior_of(c.node, d), size = between > 0 ? shape[d].size() : 0;
    if (size == 0) continue;
    Shape rows = shape;
    rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(d) + 1, Dim(1));
    x = c.onnx.node("Reshape", {x, c.onnx.shape_of(rows)});
    std::vector<int64_t> behind(2 * rows.size(), 0);
    behind[rows.size() + d + 1] = between;
    x = c.onnx.node("Pad", {x, c.onnx.ints(behind), value});
    shape[d] = size * (between + 1);
    x = c.onnx.node("Reshape", {x, c.onnx.shape_of(shape)});
    high[d] -= between;
  }
  if (shape.empty()) return c.one("Identity", {x});  // which ONNX Runtime does not pad
  pads.insert(pads.end(), high.begin(), high.end());
  return c.one("Pad", {x, c.onnx.ints(pads), value});
}

}  // namespace

MILLRACE_OPERATOR(pad) {
  Operator op;
  op.name = "pad";
  op.op_class = OpClass::movement;
  op.doc = "The operand with `value` before, after and between its elements on each axis.";
  const AttributeRange padding{.low = 0, .high = INT32_MAX};
  op.attributes = {{"low", AttributeType::integers, "elements before, for each axis", padding},
                   {"high", AttributeType::integers, "elements after, for each axis", padding},
                   {"interior", Attribute(std::vector<int64_t>{}),
                    "elements between two, for each axis; empty: 0", padding},
                   {"value", Attribute(0.0), "what is filled in"}};
  op.types = pad_types;
  op.element = pad_element;
  op.gradient = pad_gradient;
  using Ints = std::vector<int64_t>;
  const auto sample = [&](DType dtype, const Shape& shape, Ints low, Ints high, Ints interior, double value) {
    op.samples.push_back({.operands = {{dtype, shape}},
                          .attributes = {{"low", std::move(low)},
                                         {"high", std::move(high)},
                                         {"interior", std::move(interior)},
                                         {"value", value}}});
  };
  for (const DType dtype : all_dtypes()) sample(dtype, {3, 17}, {1, 0}, {2, 3}, {}, 1);
  sample(f64, {2, 3, 5}, {0, 1, 0}, {1, 0, 2}, {1, 0, 2}, -0.5);
  sample(f32, {2, 2, 6, 6}, {0, 0, 1, 1}, {0, 0, 1, 1}, {}, 0);
  sample(f32, {0, 3}, {2, 0}, {1, 1}, {1, 1}, 3);
  sample(f32, {1}, {0}, {0}, {4}, 0);
  sample(f32, {}, {}, {}, {}, 0);
  op.unchanged = true;
  op.stack = [](const StackContext& c) {
    Attributes attributes = c.node.attributes;
    for (const char* list : {"low", "high", "interior"})
      attributes.set(list, ops::prepended_if_any(attributes.ints(list), 0));
    return c.graph.add(*c.node.op, {c.stack(0)}, attributes);
  };
  op.keeps_axis = [](const Node& node, std::span<const Type>, int, int axis) {
    const auto d = static_cast<size_t>(axis);
    const bool kept = node.attributes.ints("low")[d] == 0 && node.attributes.ints("high")[d] == 0 &&
                      interior_of(node, d) == 0;
    return kept ? axis : -1;
  };
  op.seams = [](const ElementContext& c, int dim) {
    const int64_t low = c.node.attributes.ints("low")[dim], high = c.node.attributes.ints("high")[dim];
    if (low <= 0 && high <= 0) return std::vector<int64_t>{};
    return std::vector<int64_t>{low, c.node.types[0].shape[dim].size() - high};
  };
  op.onnx = {"Pad"};
  op.onnx_rule = as_onnx;
  return op;
}
