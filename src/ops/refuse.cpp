#include "base/format.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(refuse) {
  Operator op;
  op.name = "refuse";
  op.op_class = OpClass::heavy;
  op.doc =
      "Zeros; where the operand (bool []) holds, InputError with `message` instead. It stands for what a "
      "branch would give that cannot be computed, as long as it is not taken.";
  op.attributes = {{"message", AttributeType::text, "why"},
                   {"shape", AttributeType::shape, "the result's shape"},
                   {"dtype", Attribute(f32), "the result's dtype"}};
  op.types = [](const TypeContext& c) {
    if (c.operands[0] != Type{boolean, {}}) c.error("the operand must be a bool []");
    if (!c.attributes.shape("shape").is_static()) c.error("the shape must be of known sizes");
    return std::vector<Type>{{c.attributes.dtype("dtype"), c.attributes.shape("shape")}};
  };
  op.differentiable = false;
  op.flops = [](const Graph&, const Node&) { return 0.0; };
  const auto sample = [&](DType dtype, const Shape& shape) {
    op.samples.push_back({.operands = {{boolean, {}}},
                          .attributes = {{"message", std::string("why")}, {"shape", shape}, {"dtype", dtype}},
                          .values = {{0, {0}}}});
  };
  for (const DType dtype : {f32, f64, f16, bf16, i64, i32, u8, boolean}) sample(dtype, {3});
  sample(f32, {});
  sample(f32, {0, 4});
  sample(f32, {1});
  return op;
}
