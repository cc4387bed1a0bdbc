// The small builder interface in which scalar bodies are written once; ref interprets them, cpu compiles
// them.
#pragma once

#include <span>

#include <millrace/type.h>

namespace millrace {

/// A scalar (or, in compiled code, a lane) inside a scalar body.
struct Scalar {
  int id = -1;
};

/// Operations of scalar bodies. Integers wrap; shifts are logical; division of integers truncates and x/0 is
/// 0. min and max return NaN when an operand is NaN. Comparisons and logic give boolean.
enum class ScalarOp {
  // unary
  neg,
  abs,
  floor,
  ceil,
  round_even,
  trunc,
  sqrt,
  exp,
  log,
  sin,
  cos,
  tanh,
  erf,
  sigmoid,
  logical_not,
  bit_not,
  // binary
  add,
  sub,
  mul,
  div,
  rem,
  min,
  max,
  pow,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or
};

/// Internal unsigned 32- and 64-bit types, for random numbers and bits inside scalar bodies only.
inline constexpr DType u32{Kind::unsigned_int, 32}, u64{Kind::unsigned_int, 64};

/// Both operands of a binary operation have the same dtype. f16 and bf16 operands are computed in f32 and
/// rounded when stored.
class ScalarBuilder {
 public:
  virtual ~ScalarBuilder() = default;

  virtual Scalar constant(DType dtype, double value) = 0;
  virtual Scalar integer(DType dtype, int64_t value) = 0;
  virtual Scalar unary(ScalarOp op, Scalar a) = 0;
  virtual Scalar binary(ScalarOp op, Scalar a, Scalar b) = 0;
  virtual Scalar select(Scalar condition, Scalar if_true, Scalar if_false) = 0;
  /// Float to int truncates and saturates (NaN gives 0), int to bool is "≠ 0", int to narrower int wraps.
  virtual Scalar cast(Scalar a, DType dtype) = 0;
  /// The same bits as another type of the same width.
  virtual Scalar bitcast(Scalar a, DType dtype) = 0;
  virtual DType dtype(Scalar a) const = 0;

  // Short names; a number takes the other operand's dtype.
  Scalar add(Scalar a, Scalar b) { return binary(ScalarOp::add, a, b); }
  Scalar sub(Scalar a, Scalar b) { return binary(ScalarOp::sub, a, b); }
  Scalar mul(Scalar a, Scalar b) { return binary(ScalarOp::mul, a, b); }
  Scalar div(Scalar a, Scalar b) { return binary(ScalarOp::div, a, b); }
  Scalar add(Scalar a, double b) { return add(a, constant(dtype(a), b)); }
  Scalar sub(Scalar a, double b) { return sub(a, constant(dtype(a), b)); }
  Scalar mul(Scalar a, double b) { return mul(a, constant(dtype(a), b)); }
  Scalar neg(Scalar a) { return unary(ScalarOp::neg, a); }
  Scalar exp(Scalar a) { return unary(ScalarOp::exp, a); }
  Scalar max(Scalar a, Scalar b) { return binary(ScalarOp::max, a, b); }
  Scalar min(Scalar a, Scalar b) { return binary(ScalarOp::min, a, b); }
  Scalar less(Scalar a, Scalar b) { return binary(ScalarOp::less, a, b); }
  Scalar equal(Scalar a, Scalar b) { return binary(ScalarOp::equal, a, b); }
  Scalar both(Scalar a, Scalar b) { return binary(ScalarOp::logical_and, a, b); }
};

/// Builder of element bodies: scalars plus loads at computed positions (i64 scalars, row-major logical
/// index).
class ElementBuilder : public ScalarBuilder {
 public:
  /// The element of `operand` at `index`, which must be inside its shape.
  virtual Scalar load(int operand, std::span<const Scalar> index) = 0;
  /// As load where `condition` holds (the index may be anything where it does not), else `otherwise`.
  virtual Scalar load_if(Scalar condition, int operand, std::span<const Scalar> index, Scalar otherwise) = 0;
};

}  // namespace millrace
