// Which scalar operations give bool.
#pragma once

#include <millrace/scalar.h>

namespace millrace {

inline bool is_comparison(ScalarOp op) { return op >= ScalarOp::equal && op <= ScalarOp::greater_equal; }
inline bool is_logic(ScalarOp op) { return op == ScalarOp::logical_and || op == ScalarOp::logical_or; }
/// What an operation gives on operands of that dtype.
inline DType result_dtype(ScalarOp op, DType operands) {
  return is_comparison(op) || is_logic(op) || op == ScalarOp::logical_not ? boolean : operands;
}

}  // namespace millrace
