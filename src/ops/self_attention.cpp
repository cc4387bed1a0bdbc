#include "ops/attention.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> self_attention_types(const TypeContext& c) {
  const Type& x = c.operands[0];
  if (!x.dtype.is_float()) c.error("dtype is not supported");
  if (x.shape.rank() != 4)
    c.error("the operand must have the dimensions [batch, length, heads + 2 · shared heads, width]");
  if (!x.shape[2].is_static()) c.error("the heads must be a number, not a named dimension");
  ops::check_packed_attention(c, 1);
  const int64_t heads = c.attributes.integer("heads");
  return {{x.dtype, {x.shape[0], x.shape[1], heads, x.shape[3]}},
          {ops::wide(x.dtype), {x.shape[0], x.shape[1], heads}}};
}

Attributes inner_attributes(const Attributes& attributes) {
  return {{"causal", attributes.flag("causal")}, {"scale", attributes.number("scale")}};
}

std::vector<Value> self_attention_body(Graph& graph, std::span<const Value> x, const Attributes& attributes) {
  ops::Build b(graph);
  const ops::Unpacked parts = ops::unpack_heads(b, x[0], attributes.integer("heads"));
  std::vector<Value> operands = {parts.q, parts.k, parts.v};
  if (x.size() > 1) operands.push_back(x[1]);
  const Value y = graph.add("attention", operands, inner_attributes(attributes));
  return {ops::swap_heads(b, y), b.transpose({y.node, 1}, {0, 2, 1})};
}

std::vector<Value> self_attention_gradient(const GradientContext& c) {
  ops::Build b(c.graph);
  const Value x = c.operands[0], mask = c.operands.size() > 1 ? c.operands[1] : Value{};
  const Value g = c.result_gradients[0].valid() ? c.result_gradients[0] : b.zeros(c.results[0]);
  const Value inner = ops::attention_inner(b, c.results[0], g, c.result_gradients[1]);
  std::vector<Value> operands = {x, g, c.results[1], inner};
  if (mask.valid()) operands.push_back(mask);
  std::vector<Value> parts = {c.graph.add("self_attention_grad", operands, c.node.attributes)};
  if (!mask.valid()) return parts;
  parts.emplace_back();
  if (c.type(mask).dtype.is_float()) {
    const ops::Unpacked u = ops::unpack_heads(b, x, c.node.attributes.integer("heads"));
    parts.back() =
        ops::mask_gradient(b,
                           {u.q, u.k, u.v, ops::swap_heads(b, g), b.transpose(c.results[1], {0, 2, 1}),
                            b.transpose(inner, {0, 2, 1}), mask},
                           c.node.attributes);
  }
  return parts;
}

}  // namespace

MILLRACE_OPERATOR(self_attention) {
  Operator op;
  op.name = "self_attention";
  op.op_class = OpClass::composite;
  op.doc =
      "attention of a sequence with itself, q, k and v being neighbouring heads of one operand [batch, "
      "length, heads + 2 · "
      "shared heads, width], as one projection gives them: no part is copied out. Results: [batch, length, "
      "heads, width] and "
      "the log-sum-exp [batch, length, heads]. An optional mask is broadcast to [batch, heads, length, "
      "length].";
  op.max_operands = 2;
  op.attributes = ops::attention_attributes();
  op.attributes.push_back({"heads", AttributeType::integer, "heads of q", {.low = 1}});
  op.types = self_attention_types;
  op.body = self_attention_body;
  op.gradient = self_attention_gradient;
  op.tolerance = {.f32 = 1e-4, .f64 = 1e-11, .half = 3e-2};
  const auto sample = [&](DType dtype, const Shape& x, int64_t heads, bool causal,
                          std::optional<Type> mask = {}) {
    Sample s{.operands = {{dtype, x}}, .attributes = {{"heads", heads}, {"causal", causal}}};
    if (mask) s.operands.push_back(*mask);
    op.samples.push_back(std::move(s));
  };
  sample(f32, {2, 7, 9, 8}, 3, false);
  sample(f32, {1, 19, 8, 5}, 4, true);
  sample(f32, {2, 5, 6, 4}, 2, false, Type{boolean, {2, 1, 1, 5}});
  sample(f32, {1, 1, 3, 1}, 1, true);
  sample(f32, {0, 3, 6, 4}, 2, false);
  sample(f64, {1, 3, 4, 2}, 2, true);
  sample(f64, {2, 2, 3, 2}, 1, false, Type{f64, {2, 1, 2, 2}});
  sample(bf16, {2, 5, 6, 8}, 2, true);
  sample(f16, {1, 4, 3, 8}, 1, false);
  op.narrow_operands = 1;
  return op;
}
