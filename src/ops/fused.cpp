#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(fused) {
  Operator op;
  op.name = "fused";
  op.op_class = OpClass::group;
  op.doc =
      "A group that the fuse pass made and a back end compiles to one loop nest; its body holds "
      "element-wise, movement "
      "and generator operators, and reductions as results.";
  op.min_operands = 0;
  op.max_operands = -1;
  return op;
}
