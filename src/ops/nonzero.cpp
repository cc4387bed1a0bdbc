#include "base/format.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(nonzero) {
  Operator op;
  op.name = "nonzero";
  op.op_class = OpClass::heavy;
  op.doc =
      "Where a mask [d1 … dr] holds: i64 [r, elements], the coordinates of each such element in row-major "
      "order, then 0; and i64 [], how many there are.";
  op.types = [](const TypeContext& c) {
    const Type& mask = c.operands[0];
    if (!mask.dtype.is_bool()) c.error("the mask must be bool");
    if (mask.shape.rank() < 1 || !mask.shape.is_static())
      c.error(fmt::format("the mask {} must have dimensions, of known sizes", mask.shape.str()));
    return std::vector<Type>{{i64, {mask.shape.rank(), mask.shape.count()}}, {i64, {}}};
  };
  op.differentiable = false;
  op.flops = [](const Graph&, const Node&) { return 0.0; };  // it looks
  const auto sample = [&](const Shape& shape) { op.samples.push_back({.operands = {{boolean, shape}}}); };
  for (const Shape& shape :
       {Shape{1}, {0}, {7}, {3, 5}, {2, 1, 9}, {4, 0, 2}, {2, 3, 2, 3}, {5000}, {70, 81}})
    sample(shape);
  op.samples.push_back({.operands = {{boolean, {100}}}, .values = {{0, std::vector<double>(100, 0)}}});
  op.samples.push_back({.operands = {{boolean, {6, 20}}}, .values = {{0, std::vector<double>(120, 1)}}});
  return op;
}
