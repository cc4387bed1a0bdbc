// What the files of tensor functions share.
#pragma once

#include <millrace/tensor.h>

namespace millrace::trace {

/// One operand, one result.
Tensor unary(std::string_view op, const In& a, Attributes attributes = {});
/// Two operands broadcast to one shape.
Tensor binary(std::string_view op, const In& a, const Operand& b);
/// A number as a scalar tensor, or the tensor itself (cast to `dtype` when it came from a number).
Tensor operand(const Operand& b, DType dtype, const std::source_location& where);
/// A non-negative axis; throws TypeError naming the function.
int axis_of(const In& a, int axis, std::string_view function);

}  // namespace millrace::trace
