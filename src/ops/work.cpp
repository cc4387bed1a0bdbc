#include "ops/work.h"

#include <algorithm>

#include <millrace/operator.h>

#include "ir/scalar_ops.h"
#include "ir/values.h"

namespace millrace::ops {
namespace {

/// Counts the float operations of a body instead of doing them.
class Counter : public ElementBuilder {
 public:
  explicit Counter(std::span<const Type> operands) : operands_(operands) {}
  Scalar value(DType dtype) {
    dtypes_.push_back(dtype);
    return {static_cast<int>(dtypes_.size()) - 1};
  }
  double count() const { return count_; }

  Scalar constant(DType dtype, double) override { return value(dtype); }
  Scalar integer(DType dtype, int64_t) override { return value(dtype); }
  Scalar unary(ScalarOp op, Scalar a) override {
    const DType result = result_dtype(op, dtype(a));
    if (result.is_float()) ++count_;
    return value(result);
  }
  Scalar binary(ScalarOp op, Scalar a, Scalar) override { return unary(op, a); }
  Scalar select(Scalar, Scalar if_true, Scalar) override { return value(dtype(if_true)); }
  Scalar cast(Scalar, DType to) override { return value(to); }
  Scalar bitcast(Scalar, DType to) override { return value(to); }
  DType dtype(Scalar a) const override { return dtypes_[a.id]; }
  Scalar load(int operand, std::span<const Scalar>) override { return value(operands_[operand].dtype); }
  Scalar load_if(Scalar, int operand, std::span<const Scalar>, Scalar) override {
    return value(operands_[operand].dtype);
  }

 private:
  std::span<const Type> operands_;
  std::vector<DType> dtypes_;
  double count_ = 0;
};

double elements(const Type& type) { return static_cast<double>(type.shape.count()); }

/// Of so many elements, some perhaps counted twice: of no more than there are.
double bytes_of(const Type& type, int64_t count) {
  return static_cast<double>(std::min(count, type.shape.count()) * type.dtype.bytes());
}

}  // namespace

double flops(const Graph& graph) {
  double sum = 0;
  for (int i = 0; i < graph.size(); ++i) sum += flops(graph, graph.node(i));
  return sum;
}

double flops(const Graph& graph, const Node& node) {
  const Operator& op = *node.op;
  if (op.flops) return op.flops(graph, node);
  if (node.body) return flops(*node.body);
  const std::vector<Type> types = types_of(graph, node.operands);
  Counter counter(types);
  if (op.reduction) {
    const bool arithmetic =
        types[0].dtype.is_float() && *op.reduction != Reduction::argmax && *op.reduction != Reduction::argmin;
    return arithmetic ? elements(types[0]) : 0;
  }
  if (op.scalar) {
    std::vector<Scalar> operands;
    for (const Type& type : types) operands.push_back(counter.value(type.dtype));
    op.scalar(counter, operands, node);
  } else if (op.element) {
    std::vector<Scalar> index;
    for (int d = 0; d < node.types[0].shape.rank(); ++d) index.push_back(counter.value(i64));
    op.element(counter, index, {node, types});
  }
  return counter.count() * elements(node.types[0]);
}

double bytes_read(const Graph& graph, const Node& node, int k, bool in_place) {
  const Type& type = graph.type(node.operands[k]);
  if (k == 0 && node.op->touches) return bytes_of(type, node.op->touches(graph, node, in_place).read);
  const auto whole = static_cast<double>(type.bytes());
  // What a loop or a branch takes of an operand is its body's business, whose inputs are others.
  if (!node.body || node.op->runs_body()) return whole;
  // A loop nest loads where it computes: what its readers take.
  const Value input = node.body->inputs()[k];
  double taken = 0;
  for (int i = 0; i < node.body->size(); ++i) {
    const Node& reader = node.body->node(i);
    for (size_t o = 0; o < reader.operands.size(); ++o)
      if (reader.operands[o] == input) taken += bytes_read(*node.body, reader, static_cast<int>(o));
  }
  return std::min(whole, taken);
}

double bytes_written(const Graph& graph, const Node& node, int r, bool in_place) {
  const Type& type = node.types[r];
  if (r == 0 && node.op->touches) return bytes_of(type, node.op->touches(graph, node, in_place).written);
  return static_cast<double>(type.bytes());
}

int arithmetic_bits(const Graph& graph, const Node& node) {
  // Composites that are claimed whole (attention, convolutions with what follows) multiply what precision
  // narrows, though their bodies are written as sums are kept: in f32.
  if ((node.op->op_class == OpClass::heavy || node.op->narrow_operands != 0) && !node.operands.empty())
    return graph.type(node.operands[0]).dtype.bits;
  if (!node.body || node.body->size() == 0) return 32;
  int most = 0;
  double largest = flops(*node.body, node.body->node(0));
  for (int i = 1; i < node.body->size(); ++i)
    if (const double own = flops(*node.body, node.body->node(i)); own > largest) {
      most = i;
      largest = own;
    }
  return arithmetic_bits(*node.body, node.body->node(most));
}

}  // namespace millrace::ops
