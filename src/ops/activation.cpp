#include "ops/activation.h"

#include <millrace/onnx_rule.h>

namespace millrace::ops {

Operator activation(std::string_view name, std::string_view doc, std::vector<AttributeSpec> attributes,
                    std::function<Value(Build&, Value, const Attributes&)> body) {
  Operator op;
  op.name = name;
  op.op_class = OpClass::composite;
  op.doc = doc;
  op.attributes = std::move(attributes);
  op.types = [](const TypeContext& c) {
    if (!c.operands[0].dtype.is_float()) c.error("dtype is not supported");
    return std::vector<Type>{c.operands[0]};
  };
  op.body = [body](Graph& graph, std::span<const Value> operands, const Attributes& given) {
    Build b(graph);
    return std::vector<Value>{b.cast(body(b, b.widen(operands[0]), given), b.dtype(operands[0]))};
  };
  op.samples = {{.operands = {{f32, {}}}},        {.operands = {{f32, {0, 3}}}},
                {.operands = {{f32, {3, 5, 7}}}}, {.operands = {{f32, {2, 64}}}, .low = -6, .high = 6},
                {.operands = {{f64, {11}}}},      {.operands = {{f64, {9}}}, .low = -5, .high = 5},
                {.operands = {{bf16, {2, 17}}}},  {.operands = {{f16, {2, 17}}}},
                {.operands = {{f32, {1}}}}};
  return op;
}

std::function<std::vector<std::string>(const OnnxCall&)> onnx_with_alpha(const std::string& type) {
  return [type](const OnnxCall& c) {
    return c.one(type, c.operands, {{"alpha", static_cast<float>(c.attributes().number("alpha"))}});
  };
}

}  // namespace millrace::ops
