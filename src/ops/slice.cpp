#include <algorithm>
#include <limits>

#include <millrace/onnx_rule.h>

#include "ops/build.h"
#include "ops/registry.h"
#include "ops/rows.h"

using namespace millrace;

namespace {

constexpr int64_t to_end = std::numeric_limits<int64_t>::max();

/// A bound of numpy's slicing: negative counts from the end, clamped to the axis.
int64_t clamped(int64_t bound, int64_t size) {
  return std::clamp<int64_t>(bound < 0 ? bound + size : bound, 0, size);
}

std::vector<Type> slice_types(const TypeContext& c) {
  const Type& x = c.operands[0];
  const std::vector<int64_t>&starts = c.attributes.ints("starts"), &ends = c.attributes.ints("ends"),
        &steps = c.attributes.ints("steps");
  const auto rank = static_cast<size_t>(x.shape.rank());
  if (starts.size() != rank || ends.size() != rank || (steps.size() != rank && !steps.empty()))
    c.error("starts, ends and steps need one number for each axis");
  Shape shape;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t step = steps.empty() ? 1 : steps[d];
    if (!x.shape[d].is_static()) {
      if (starts[d] != 0 || ends[d] != to_end || step != 1)
        c.error("a named dimension can only be taken whole");
      shape.push_back(x.shape[d]);
      continue;
    }
    const int64_t size = x.shape[d].size(), start = clamped(starts[d], size), end = clamped(ends[d], size);
    shape.push_back(end > start ? (end - start - 1) / step + 1 : 0);
  }
  return {{x.dtype, shape}};
}

int64_t step_of(const Node& node, size_t d) {
  const std::vector<int64_t>& steps = node.attributes.ints("steps");
  return steps.empty() ? 1 : steps[d];
}

int64_t start_of(const Node& node, const Shape& operand, size_t d) {
  return clamped(node.attributes.ints("starts")[d], operand[d].size());
}

/// Zeros everywhere but at the elements taken: a pad with interior padding.
std::vector<Value> slice_gradient(const GradientContext& c) {
  const Shape& from = c.type(c.operands[0]).shape;
  std::vector<int64_t> low, high, interior;
  for (size_t d = 0; d < from.size(); ++d) {
    const int64_t size = from[d].size(), taken = c.node.types[0].shape[d].size(), step = step_of(c.node, d);
    const int64_t start = taken == 0 ? 0 : start_of(c.node, from, d);
    low.push_back(start);
    high.push_back(taken == 0 ? size : size - (start + (taken - 1) * step + 1));
    interior.push_back(taken > 1 ? step - 1 : 0);  // a step over all that is left may be any number
  }
  return {
      c.graph.add("pad", {c.result_gradients[0]}, {{"low", low}, {"high", high}, {"interior", interior}})};
}

std::vector<std::string> onnx_slice(const OnnxCall& c) {
  const std::vector<int64_t>&starts = c.attributes().ints("starts"), &ends = c.attributes().ints("ends");
  if (starts.empty()) return c.one("Identity", c.operands);
  std::vector<int64_t> axes, steps = c.attributes().ints("steps");
  for (size_t axis = 0; axis < starts.size(); ++axis) axes.push_back(static_cast<int64_t>(axis));
  steps.resize(starts.size(), 1);
  const std::string names[] = {c.onnx.ints(starts), c.onnx.ints(ends), c.onnx.ints(axes), c.onnx.ints(steps)};
  return c.one("Slice", {c.operands[0], names[0], names[1], names[2], names[3]});
}

}  // namespace

MILLRACE_OPERATOR(slice) {
  Operator op;
  op.name = "slice";
  op.op_class = OpClass::movement;
  op.doc =
      "On each axis the elements starts, starts + steps, … before ends, as Python slices: negative bounds "
      "count from "
      "the end, bounds beyond it are cut. Steps are positive.";
  op.attributes = {
      {"starts", AttributeType::integers, "first element, for each axis"},
      {"ends", AttributeType::integers,
       "first element not taken, for each axis; the greatest i64: to the end"},
      {"steps", Attribute(std::vector<int64_t>{}), "distance, for each axis; empty: 1", {.low = 1}}};
  op.types = slice_types;
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    std::vector<Scalar> at;
    for (size_t d = 0; d < index.size(); ++d) {
      const Scalar step = b.integer(i64, step_of(c.node, d));
      at.push_back(b.add(b.mul(index[d], step), b.integer(i64, start_of(c.node, c.operands[0].shape, d))));
    }
    return b.load(0, at);
  };
  op.touches = [](const Graph&, const Node& node, bool) {
    const int64_t taken = node.types[0].shape.count();
    return Touched{taken, taken};
  };
  op.gradient = slice_gradient;
  using Ints = std::vector<int64_t>;
  const auto sample = [&](DType dtype, const Shape& shape, Ints starts, Ints ends, Ints steps) {
    op.samples.push_back(
        {.operands = {{dtype, shape}},
         .attributes = {{"starts", std::move(starts)}, {"ends", std::move(ends)}, {"steps", steps}}});
  };
  for (const DType dtype : all_dtypes()) sample(dtype, {5, 19}, {1, 2}, {4, -1}, {});
  sample(f64, {9, 8, 3}, {0, 1, 1}, {9, 8, 2}, {2, 3, 1});
  sample(f32, {7}, {-3}, {to_end}, {});
  sample(f32, {7}, {3}, {3}, {1});
  sample(f32, {7}, {5}, {2}, {2});
  sample(f32, {0, 4}, {0, 0}, {to_end, 2}, {});
  sample(f32, {}, {}, {}, {});
  sample(f32, {1}, {0}, {to_end}, {5});
  sample(f64, {7}, {2}, {to_end}, {int64_t{1} << 40});
  op.unchanged = true;
  op.stack = [](const StackContext& c) {
    Attributes attributes = c.node.attributes;
    attributes.set("starts", ops::prepended(attributes.ints("starts"), 0));
    attributes.set("ends", ops::prepended(attributes.ints("ends"), to_end));
    attributes.set("steps", ops::prepended_if_any(attributes.ints("steps"), 1));
    return c.graph.add(*c.node.op, {c.stack(0)}, attributes);
  };
  // As large as before: all of it.
  op.keeps_axis = [](const Node& node, std::span<const Type> operands, int, int axis) {
    return node.types[0].shape[axis] == operands[0].shape[axis] ? axis : -1;
  };
  op.set_axis = [](Attributes& attributes, int axis, int64_t) {
    std::vector<int64_t> ends = attributes.ints("ends");
    ends[static_cast<size_t>(axis)] = to_end;
    attributes.set("ends", ends);
  };
  op.onnx = {"Slice"};
  op.onnx_rule = onnx_slice;
  return op;
}
