#include <millrace/operator.h>

namespace millrace {

void set_scalar(Operator& op, ScalarOp what) {
  op.scalar_op = what;
  op.scalar = [what](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return x.size() == 1 ? b.unary(what, x[0]) : b.binary(what, x[0], x[1]);
  };
}

Arithmetic arithmetic_of(const Operator& op) {
  if (op.arithmetic) return *op.arithmetic;
  const bool moves = op.op_class == OpClass::movement || op.op_class == OpClass::view;
  return moves ? Arithmetic::follows : Arithmetic::full;
}

size_t narrow_operands(const Node& node) {
  if (arithmetic_of(*node.op) == Arithmetic::narrow) return node.operands.size();
  const int count = node.op->narrow_operands;
  return count < 0 ? node.operands.size() - static_cast<size_t>(-count) : static_cast<size_t>(count);
}

}  // namespace millrace
