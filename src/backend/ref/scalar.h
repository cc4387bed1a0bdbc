// Interpretation of scalar bodies: floats in double, integers wrapping at their width.
#pragma once

#include <span>
#include <vector>

#include <millrace/array.h>
#include <millrace/scalar.h>

namespace millrace::ref {

/// One scalar: floats as a double, integers and bool as 64 bits (signed ones sign-extended).
union Cell {
  double f;
  uint64_t u;
};

Cell load_cell(const Array& array, int64_t i);
void store_cell(Array& array, int64_t i, Cell value);

/// The operations of ScalarBuilder on values; `dtype` is that of the operands.
Cell constant_cell(DType dtype, double value);
Cell integer_cell(DType dtype, int64_t value);
Cell apply_unary(ScalarOp op, DType dtype, Cell a);
Cell apply_binary(ScalarOp op, DType dtype, Cell a, Cell b);
/// Rounds to the width of `to`, so that a cast to bf16 inside a body is seen.
Cell apply_cast(DType from, DType to, Cell a);
/// The same bits as another dtype of the same width.
Cell apply_bitcast(DType from, DType to, Cell a);

/// Records a scalar body once and runs it over many elements.
class ScalarTape : public ScalarBuilder {
 public:
  /// A new operand of the body.
  Scalar operand(DType dtype);
  /// out[i] = the body's `result` on the operands' elements i; all arrays have out's shape.
  void run(std::span<const Array> operands, Scalar result, Array& out) const;

  Scalar constant(DType dtype, double value) override;
  Scalar integer(DType dtype, int64_t value) override;
  Scalar unary(ScalarOp op, Scalar a) override;
  Scalar binary(ScalarOp op, Scalar a, Scalar b) override;
  Scalar select(Scalar condition, Scalar if_true, Scalar if_false) override;
  Scalar cast(Scalar a, DType dtype) override;
  Scalar bitcast(Scalar a, DType dtype) override;
  DType dtype(Scalar a) const override { return steps_[a.id].dtype; }

 private:
  enum class What { operand, constant, unary, binary, select, cast, bitcast };
  struct Step {
    What what;
    DType dtype;  // of the result
    ScalarOp op = ScalarOp::neg;
    int a = -1, b = -1, c = -1;
    Cell value = {};
  };
  Scalar append(Step step);
  std::vector<Step> steps_;
  int operands_ = 0;
};

}  // namespace millrace::ref
