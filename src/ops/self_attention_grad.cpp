#include "ops/attention.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> self_attention_grad_types(const TypeContext& c) {
  const Type& x = c.operands[0];
  if (!x.dtype.is_float() || x.shape.rank() != 4 || !x.shape[2].is_static())
    c.error("the operand must be floats [batch, length, heads + 2 · shared heads, width]");
  ops::check_packed_attention(c, 4);
  const int64_t heads = c.attributes.integer("heads");
  const Type rows{ops::wide(x.dtype), {x.shape[0], x.shape[1], heads}};
  ops::check_operand(c, 1, "the result's gradient", {x.dtype, {x.shape[0], x.shape[1], heads, x.shape[3]}});
  ops::check_operand(c, 2, "the log-sum-exp", rows);
  ops::check_operand(c, 3, "the inner products", rows);
  return {x};
}

std::vector<Value> self_attention_grad_body(Graph& graph, std::span<const Value> x,
                                            const Attributes& attributes) {
  ops::Build b(graph);
  const ops::Unpacked parts = ops::unpack_heads(b, x[0], attributes.integer("heads"));
  std::vector<Value> operands = {parts.q,
                                 parts.k,
                                 parts.v,
                                 ops::swap_heads(b, x[1]),
                                 b.transpose(x[2], {0, 2, 1}),
                                 b.transpose(x[3], {0, 2, 1})};
  if (x.size() > 4) operands.push_back(x[4]);
  const Value first =
      graph.add("attention_grad", operands,
                {{"causal", attributes.flag("causal")}, {"scale", attributes.number("scale")}});
  std::vector<Value> gradients;
  for (int i = 0; i < 3; ++i) gradients.push_back(ops::swap_heads(b, {first.node, i}));
  return {graph.add("concat", gradients, {{"axis", int64_t{2}}})};
}

}  // namespace

MILLRACE_OPERATOR(self_attention_grad) {
  Operator op;
  op.name = "self_attention_grad";
  op.op_class = OpClass::composite;
  op.doc =
      "The gradient of self_attention with respect to its operand. Operands: that operand, the gradient of "
      "the "
      "result, the "
      "log-sum-exp that self_attention gave, sum(result · its gradient) over the width minus the gradient of "
      "the log-sum-exp, "
      "both [batch, length, heads], and the mask if there was one.";
  op.min_operands = 4;
  op.max_operands = 5;
  op.attributes = ops::attention_attributes();
  op.attributes.push_back({"heads", AttributeType::integer, "heads of q", {.low = 1}});
  op.types = self_attention_grad_types;
  op.body = self_attention_grad_body;
  op.tolerance = {.f32 = 1e-4, .f64 = 1e-11, .half = 3e-2};
  const auto sample = [&](DType dtype, const Shape& x, int64_t heads, bool causal,
                          std::optional<Type> mask = {}) {
    const Type rows{ops::wide(dtype), {x[0], x[1], heads}};
    Sample s{.operands = {{dtype, x}, {dtype, {x[0], x[1], heads, x[3]}}, rows, rows},
             .attributes = {{"heads", heads}, {"causal", causal}},
             .low = -1,
             .high = 1};
    if (mask) s.operands.push_back(*mask);
    op.samples.push_back(std::move(s));
  };
  sample(f32, {2, 7, 9, 8}, 3, false);
  sample(f32, {1, 19, 8, 5}, 4, true);
  sample(f32, {2, 5, 6, 4}, 2, false, Type{boolean, {2, 1, 1, 5}});
  sample(f32, {0, 3, 6, 4}, 2, false);
  sample(f64, {1, 3, 4, 2}, 2, true);
  sample(bf16, {2, 5, 6, 8}, 2, true);
  sample(f16, {1, 4, 3, 8}, 1, false);
  op.narrow_operands = 2;
  return op;
}
