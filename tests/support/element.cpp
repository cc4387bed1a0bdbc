#include "support/element.h"

#include <millrace/operator.h>

#include "backend/ref/index.h"
#include "backend/ref/scalar.h"
#include "base/format.h"
#include "ir/scalar_ops.h"

namespace millrace {
namespace {

/// Computes while the body is built.
class Interpreter : public ElementBuilder {
 public:
  explicit Interpreter(std::span<const Array> operands) : operands_(operands) {}

  Scalar constant(DType dtype, double value) override {
    return push(dtype, ref::constant_cell(dtype, value));
  }
  Scalar integer(DType dtype, int64_t value) override { return push(dtype, ref::integer_cell(dtype, value)); }
  Scalar unary(ScalarOp op, Scalar a) override {
    return push(dtype(a), ref::apply_unary(op, dtype(a), cell(a)));
  }
  Scalar binary(ScalarOp op, Scalar a, Scalar b) override {
    MILLRACE_CHECK(dtype(a) == dtype(b), "scalar operation {} on {} and {}", static_cast<int>(op),
                   dtype(a).name(), dtype(b).name());
    return push(result_dtype(op, dtype(a)), ref::apply_binary(op, dtype(a), cell(a), cell(b)));
  }
  Scalar select(Scalar condition, Scalar if_true, Scalar if_false) override {
    MILLRACE_CHECK(dtype(condition).is_bool() && dtype(if_true) == dtype(if_false),
                   "select of unlike dtypes");
    return push(dtype(if_true), cell(condition).u ? cell(if_true) : cell(if_false));
  }
  Scalar cast(Scalar a, DType to) override { return push(to, ref::apply_cast(dtype(a), to, cell(a))); }
  Scalar bitcast(Scalar a, DType to) override { return push(to, ref::apply_bitcast(dtype(a), to, cell(a))); }
  DType dtype(Scalar a) const override { return values_[a.id].first; }

  Scalar load(int operand, std::span<const Scalar> index) override {
    const Array& array = operands_[operand];
    const std::vector<int64_t> sizes = array.shape().sizes();
    MILLRACE_CHECK(index.size() == sizes.size(), "load with {} indices from {}", index.size(),
                   array.type().str());
    std::vector<int64_t> at;
    for (size_t d = 0; d < sizes.size(); ++d) {
      MILLRACE_CHECK(dtype(index[d]) == i64, "index of dtype {}", dtype(index[d]).name());
      at.push_back(static_cast<int64_t>(cell(index[d]).u));
      MILLRACE_CHECK(at[d] >= 0 && at[d] < sizes[d], "load at {} outside of {}", at[d], array.type().str());
    }
    return push(array.dtype(), ref::load_cell(array, ref::flatten(at, ref::strides(sizes))));
  }
  Scalar load_if(Scalar condition, int operand, std::span<const Scalar> index, Scalar otherwise) override {
    MILLRACE_CHECK(dtype(condition).is_bool() && dtype(otherwise) == operands_[operand].dtype(), "load_if");
    return cell(condition).u ? load(operand, index) : otherwise;
  }

  ref::Cell cell(Scalar a) const { return values_[a.id].second; }

 private:
  Scalar push(DType dtype, ref::Cell value) {
    values_.emplace_back(dtype, value);
    return {static_cast<int>(values_.size()) - 1};
  }
  std::span<const Array> operands_;
  std::vector<std::pair<DType, ref::Cell>> values_;
};

}  // namespace

Array interpret_element_body(const Node& node, std::span<const Array> operands) {
  std::vector<Type> types;
  for (const Array& operand : operands) types.push_back(operand.type());
  Array out(node.types[0]);
  ref::for_each_index(out.shape().sizes(), [&](int64_t i, std::span<const int64_t> index) {
    Interpreter b(operands);
    std::vector<Scalar> at;
    for (int64_t d : index) at.push_back(b.integer(i64, d));
    const Scalar value = node.op->element(b, at, {node, types});
    MILLRACE_CHECK(b.dtype(value) == out.dtype(), "element body of {} gives {}", node.op->name,
                   b.dtype(value).name());
    ref::store_cell(out, i, b.cell(value));
  });
  return out;
}

}  // namespace millrace
