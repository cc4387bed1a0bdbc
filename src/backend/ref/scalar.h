// Interpretation of scalar and element bodies: floats in double, integers wrapping at their width.
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

/// Operations of ElementBuilder on values; `dtype` is that of the operands.
Cell integer_cell(DType dtype, int64_t value);
Cell apply_unary(ScalarOp op, DType dtype, Cell a);
Cell apply_binary(ScalarOp op, DType dtype, Cell a, Cell b);
/// Rounds to the width of `to`, so that a cast to bf16 inside a body is seen.
Cell apply_cast(DType from, DType to, Cell a);

/// Records a body once and runs it for many elements.
class ScalarTape : public ElementBuilder {
 public:
  /// The operands must stay as long as the tape.
  explicit ScalarTape(std::span<const Array> operands) : operands_(operands) {}
  /// Of a scalar body: the element of operand k where the result's is; they have one shape.
  Scalar operand(int k);
  /// Of an element body: the place of the result's element along an axis.
  Scalar position(int axis);
  /// Fills `out` with the body's `result`. InternalError for a load outside of an operand.
  void run(Scalar result, Array& out) const;

  Scalar constant(DType dtype, double value) override;
  Scalar integer(DType dtype, int64_t value) override;
  Scalar unary(ScalarOp op, Scalar a) override;
  Scalar binary(ScalarOp op, Scalar a, Scalar b) override;
  Scalar select(Scalar condition, Scalar if_true, Scalar if_false) override;
  Scalar cast(Scalar a, DType dtype) override;
  Scalar bitcast(Scalar a, DType dtype) override;
  DType dtype(Scalar a) const override { return steps_[a.id].dtype; }
  Scalar load(int operand, std::span<const Scalar> index) override { return load_if({}, operand, index, {}); }
  Scalar load_if(Scalar condition, int operand, std::span<const Scalar> index, Scalar otherwise) override;

 private:
  enum class What { operand, position, load, constant, unary, binary, select, cast, bitcast };
  struct Step {
    What what;
    DType dtype;  // of the result
    ScalarOp op = ScalarOp::neg;
    int a = -1, b = -1, c = -1;
    Cell value = {};
    std::vector<int> index = {};  // of a load
  };
  /// Elements [begin, begin + count) of the result, of at most `most`: what each step gives for them.
  struct Block {
    int64_t begin, count, most;
    const Cell* cells;
    std::span<const int64_t> sizes, strides;  // of the result
    const Cell* of(int step) const { return cells + step * most; }
  };
  Scalar append(Step step);
  int64_t place(const Step& step, const Block& block, int64_t i) const;
  void fill(const Step& step, const Block& block, Cell* to) const;
  std::span<const Array> operands_;
  std::vector<Step> steps_;
};

}  // namespace millrace::ref
