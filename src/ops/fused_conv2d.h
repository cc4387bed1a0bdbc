// A convolution with what is done to its result while that is in registers, and the limits that may end it.
#pragma once

#include <optional>

#include <millrace/operator.h>

namespace millrace::ops {

/// True for a convolution with bias, residual and limits (fused_conv2d).
bool is_fused_convolution(const Node& node);

/// `value` = what it is made of, limited to [low, high]; NaN stays NaN.
struct Limited {
  Value operand;
  double low, high;
  int reads;  // of the operand, all of them for this
};
/// Of a clamp, or of what a ReLU's body is.
std::optional<Limited> limited(const Graph& graph, Value value);

}  // namespace millrace::ops
