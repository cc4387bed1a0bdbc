#include "ops/build.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(dropout) {
  Operator op;
  op.name = "dropout";
  op.op_class = OpClass::composite;
  op.doc =
      "x with every element zeroed with probability p and the others divided by 1 − p; operands x and the "
      "random key. "
      "(Srivastava et al., 2014)";
  op.min_operands = op.max_operands = 2;
  op.attributes = {
      {"p", AttributeType::number, "the probability of zero", {.low = 0, .high = 1}},
      {"stream", Attribute(int64_t{0}), "a number unique to each use", {.low = 0, .high = 0xFFFFFFFF}}};
  op.types = [](const TypeContext& c) {
    if (!c.operands[0].dtype.is_float()) c.error("dtype is not supported");
    if (c.operands[1] != Type{i64, {2}}) c.error("the key must be i64[2]: seed and step");
    return std::vector<Type>{c.operands[0]};
  };
  op.body = [](Graph& graph, std::span<const Value> operands, const Attributes& attributes) {
    ops::Build b(graph);
    const Value x = b.widen(operands[0]);
    const double p = attributes.number("p");
    if (p == 1) return std::vector<Value>{b.zeros(operands[0])};
    const Value kept = graph.add("random_bernoulli", {operands[1]},
                                 {{"shape", Shape(b.shape(x))},
                                  {"p", 1 - p},
                                  {"dtype", boolean},
                                  {"stream", attributes.integer("stream")}});
    const Value y = b.select(kept, b.mul(x, 1 / (1 - p)), b.zeros(x));
    return std::vector<Value>{b.cast(y, b.dtype(operands[0]))};
  };
  const auto sample = [&](DType dtype, const Shape& shape, double p) {
    op.samples.push_back({.operands = {{dtype, shape}, {i64, {2}}},
                          .attributes = {{"p", p}, {"stream", int64_t{3}}},
                          .values = {{1, {5, 9}}}});
  };
  sample(f32, {3, 33}, 0.3);
  sample(f32, {}, 0.5);
  sample(f32, {1}, 0.5);
  sample(f32, {0, 2}, 0.5);
  sample(f32, {7}, 0);
  sample(f32, {7}, 1);
  sample(f64, {4, 5}, 0.4);
  sample(bf16, {3, 17}, 0.1);
  sample(f16, {3, 17}, 0.1);
  op.random = true;
  return op;
}
