#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(first_occurrence) {
  Operator op;
  op.name = "first_occurrence";
  op.op_class = OpClass::heavy;
  op.doc =
      "For every element of an integer array the i32 position, in row-major order, of the first element "
      "equal to it. An "
      "element that is its own first occurrence stands for all its equals: so repeated rows are found.";
  op.types = [](const TypeContext& c) {
    const Type& x = c.operands[0];
    if (x.dtype != i64 && x.dtype != i32) c.error("the array must be i64 or i32");
    return std::vector<Type>{{i32, x.shape}};
  };
  op.differentiable = false;
  op.flops = [](const Graph&, const Node&) { return 0.0; };  // integers
  op.samples = {{.operands = {{i64, {40}}}},
                {.operands = {{i32, {3, 7}}}},
                {.operands = {{i64, {}}}},
                {.operands = {{i64, {0}}}},
                {.operands = {{i64, {1}}}},
                {.operands = {{i64, {20000}}}, .int_low = -300, .int_high = 9000},
                {.operands = {{i64, {6}}}, .values = {{0, {-1, 7e15, 3, -1, 7e15, 7e15}}}}};
  return op;
}
