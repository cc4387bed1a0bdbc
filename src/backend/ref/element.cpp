// Element bodies, interpreted one element at a time: for operators that a program adds.
#include <millrace/operator.h>

#include "backend/ref/registry.h"
#include "backend/ref/scalar.h"
#include "ir/scalar_ops.h"

namespace millrace::ref {
namespace {

/// Computes as it is told to.
class Interpreter : public ElementBuilder {
 public:
  explicit Interpreter(std::span<const Array> operands) : operands_(operands) {}
  Scalar value(DType dtype, Cell cell) {
    values_.push_back({dtype, cell});
    return {static_cast<int>(values_.size()) - 1};
  }
  Cell cell(Scalar a) const { return values_[a.id].cell; }

  Scalar constant(DType dtype, double number) override { return value(dtype, constant_cell(dtype, number)); }
  Scalar integer(DType dtype, int64_t number) override { return value(dtype, integer_cell(dtype, number)); }
  Scalar unary(ScalarOp op, Scalar a) override {
    return value(result_dtype(op, dtype(a)), apply_unary(op, dtype(a), cell(a)));
  }
  Scalar binary(ScalarOp op, Scalar a, Scalar b) override {
    return value(result_dtype(op, dtype(a)), apply_binary(op, dtype(a), cell(a), cell(b)));
  }
  Scalar select(Scalar condition, Scalar if_true, Scalar if_false) override {
    return cell(condition).u ? if_true : if_false;
  }
  Scalar cast(Scalar a, DType to) override { return value(to, apply_cast(dtype(a), to, cell(a))); }
  Scalar bitcast(Scalar a, DType to) override { return value(to, apply_bitcast(dtype(a), to, cell(a))); }
  DType dtype(Scalar a) const override { return values_[a.id].dtype; }
  Scalar load(int operand, std::span<const Scalar> index) override {
    const Array& array = operands_[operand];
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d)
      at = at * array.shape()[d].size() + static_cast<int64_t>(cell(index[d]).u);
    return value(array.dtype(), load_cell(array, at));
  }
  Scalar load_if(Scalar condition, int operand, std::span<const Scalar> index, Scalar otherwise) override {
    return cell(condition).u ? load(operand, index) : otherwise;
  }

 private:
  struct Typed {
    DType dtype;
    Cell cell;
  };
  std::span<const Array> operands_;
  std::vector<Typed> values_;
};

}  // namespace

std::vector<Array> interpret_element_body(const Node& node, std::span<const Array> operands) {
  std::vector<Type> types;
  for (const Array& operand : operands) types.push_back(operand.type());
  Array result(node.types[0]);
  for (int64_t i = 0; i < result.count(); ++i) {
    Interpreter interpreter(operands);
    std::vector<Scalar> index(node.types[0].shape.size());
    int64_t rest = i;
    for (size_t d = index.size(); d-- > 0;) {
      const int64_t size = node.types[0].shape[d].size();
      index[d] = interpreter.integer(i64, rest % size);
      rest /= size;
    }
    store_cell(result, i, interpreter.cell(node.op->element(interpreter, index, {node, types})));
  }
  return {result};
}

}  // namespace millrace::ref
