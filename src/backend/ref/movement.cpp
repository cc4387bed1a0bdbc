// Data movement: bits are copied, nothing is computed.
#include <algorithm>

#include "backend/ref/index.h"
#include "backend/ref/registry.h"
#include "ops/axis.h"

using namespace millrace;
using namespace millrace::ref;

MILLRACE_REF(broadcast) {
  Array out(node.types[0]);
  const std::vector<int64_t> from = operands[0].shape().sizes(), stride = strides(from);
  const size_t extra = out.shape().size() - from.size();
  for_each_index(out.shape().sizes(), [&](int64_t i, std::span<const int64_t> index) {
    int64_t at = 0;
    for (size_t d = 0; d < from.size(); ++d)
      if (from[d] != 1) at += index[d + extra] * stride[d];
    copy_element(out, i, operands[0], at);
  });
  return {out};
}

MILLRACE_REF(transpose) {
  Array out(node.types[0]);
  const std::vector<int64_t>& permutation = node.attributes.ints("permutation");
  const std::vector<int64_t> stride = strides(operands[0].shape().sizes());
  for_each_index(out.shape().sizes(), [&](int64_t i, std::span<const int64_t> index) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * stride[permutation[d]];
    copy_element(out, i, operands[0], at);
  });
  return {out};
}

MILLRACE_REF(slice) {
  Array out(node.types[0]);
  const std::vector<int64_t>&starts = node.attributes.ints("starts"), &steps = node.attributes.ints("steps");
  const std::vector<int64_t> from = operands[0].shape().sizes(), stride = strides(from);
  for_each_index(out.shape().sizes(), [&](int64_t i, std::span<const int64_t> index) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t start = starts[d] < 0 ? std::max<int64_t>(starts[d] + from[d], 0) : starts[d];
      at += (start + index[d] * (steps.empty() ? 1 : steps[d])) * stride[d];
    }
    copy_element(out, i, operands[0], at);
  });
  return {out};
}

MILLRACE_REF(pad) {
  // Filled with the value, then the operand's elements are put to their places.
  Array out(node.types[0]);
  const Array value = Array::scalar(out.dtype(), node.attributes.number("value"));
  for (int64_t i = 0; i < out.count(); ++i) copy_element(out, i, value, 0);
  const std::vector<int64_t>&low = node.attributes.ints("low"), &interior = node.attributes.ints("interior");
  const std::vector<int64_t> stride = strides(out.shape().sizes());
  for_each_index(operands[0].shape().sizes(), [&](int64_t i, std::span<const int64_t> index) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d)
      at += (low[d] + index[d] * (1 + (interior.empty() ? 0 : interior[d]))) * stride[d];
    copy_element(out, at, operands[0], i);
  });
  return {out};
}

MILLRACE_REF(concat) {
  Array out(node.types[0]);
  const std::vector<int64_t> stride = strides(out.shape().sizes());
  const int64_t axis = ops::axis_of(node.attributes, out.shape().rank());
  int64_t start = 0;
  for (const Array& operand : operands) {
    for_each_index(operand.shape().sizes(), [&](int64_t i, std::span<const int64_t> index) {
      copy_element(out, flatten(index, stride) + start * stride[axis], operand, i);
    });
    start += operand.shape()[axis].size();
  }
  return {out};
}

MILLRACE_REF(gather) {
  const Array &x = operands[0], &indices = operands[1];
  Array out(node.types[0]);  // zeros stay where an index is outside
  const std::vector<int64_t> sizes = x.shape().sizes();
  const int64_t axis = ops::axis_of(node.attributes, x.shape().rank());
  int64_t inner = 1, outer = 1;
  for (size_t d = axis + 1; d < sizes.size(); ++d) inner *= sizes[d];
  for (int64_t d = 0; d < axis; ++d) outer *= sizes[d];
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < indices.count(); ++k) {
      const int64_t picked = indices.int_at(k);
      if (picked < 0 || picked >= sizes[axis]) continue;
      for (int64_t i = 0; i < inner; ++i)
        copy_element(out, (o * indices.count() + k) * inner + i, x, (o * sizes[axis] + picked) * inner + i);
    }
  }
  return {out};
}

MILLRACE_REF(one_hot) {
  Array out(node.types[0]);
  const int64_t depth = node.attributes.integer("depth");
  for (int64_t i = 0; i < operands[0].count(); ++i) {
    const int64_t picked = operands[0].int_at(i);
    if (picked >= 0 && picked < depth) out.set(i * depth + picked, 1);
  }
  return {out};
}

MILLRACE_REF(iota) {
  Array out(node.types[0]);
  const int64_t axis = ops::axis_of(node.attributes, out.shape().rank());
  for_each_index(out.shape().sizes(),
                 [&](int64_t i, std::span<const int64_t> index) { out.set_int(i, index[axis]); });
  return {out};
}
