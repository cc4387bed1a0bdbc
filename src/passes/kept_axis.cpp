#include "passes/kept_axis.h"

#include <algorithm>

#include <millrace/operator.h>

#include "passes/rules/axes.h"

namespace millrace {

int kept_axis(const Node& node, std::span<const Type> operands, int operand, int axis) {
  const Operator& op = *node.op;
  const int rank = operands[static_cast<size_t>(operand)].shape.rank();
  if (axis >= rank) return -1;
  if (op.op_class == OpClass::elementwise) return axis;
  if (op.op_class == OpClass::reduction) {
    const std::vector<int64_t> axes = axes_of(node, rank);
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) return -1;
    if (node.attributes.flag("keep_dims")) return axis;
    return axis - static_cast<int>(
                      std::count_if(axes.begin(), axes.end(), [&](int64_t summed) { return summed < axis; }));
  }
  if (op.permutation) {
    const std::vector<int64_t> from = op.permutation(node);
    return static_cast<int>(std::find(from.begin(), from.end(), axis) - from.begin());
  }
  return op.keeps_axis ? op.keeps_axis(node, operands, operand, axis) : -1;
}

}  // namespace millrace
