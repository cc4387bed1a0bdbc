#include "ops/norm.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(batch_norm_inference) {
  Operator op;
  op.name = "batch_norm_inference";
  op.op_class = OpClass::composite;
  op.doc =
      "Batch normalisation of x [batch, channels, …] with given statistics: operands x, mean, variance, "
      "weight, bias; "
      "weight · (x − mean) / sqrt(variance + eps) + bias.";
  op.min_operands = op.max_operands = 5;
  op.attributes = {{"eps", Attribute(1e-5), "added to the variance", {.low = 0}}};
  op.types = [](const TypeContext& c) {
    const Shape channels = ops::channels_of(c);
    const std::string_view names[] = {"", "the mean", "the variance", "the weight", "the bias"};
    for (int i = 1; i < 5; ++i) ops::check_parameter(c, i, names[i], channels);
    return std::vector<Type>{c.operands[0]};
  };
  op.body = [](Graph& graph, std::span<const Value> operands, const Attributes& attributes) {
    ops::Build b(graph);
    const int rank = b.shape(operands[0]).rank();
    const Value variance = b.widen(operands[2]);
    // One multiplication and one addition an element; the rest is a channel's, and constant in a frozen
    // model.
    const Value scale =
        b.mul(b.widen(operands[3]), b.unary("rsqrt", b.add(variance, attributes.number("eps"))));
    const Value shift = b.sub(b.widen(operands[4]), b.mul(b.widen(operands[1]), scale));
    const Value y = b.add(b.mul(b.widen(operands[0]), ops::per_channel(b, scale, rank)),
                          ops::per_channel(b, shift, rank));
    return std::vector<Value>{b.cast(y, b.dtype(operands[0]))};
  };
  op.onnx = {"BatchNormalization"};
  const auto sample = [&](DType dtype, DType parameters, const Shape& x) {
    const Type vector{parameters, {x[1]}};
    op.samples.push_back({.operands = {{dtype, x}, vector, vector, vector, vector}, .low = 0.25, .high = 2});
  };
  sample(f32, f32, {4, 3, 5, 7});
  sample(f32, f32, {17, 5});
  sample(f32, f32, {0, 3, 2, 2});
  sample(f32, f32, {1, 1, 1, 1});
  sample(f64, f64, {3, 2, 2, 2});
  sample(f64, f64, {5, 3});
  sample(bf16, bf16, {4, 3, 4, 4});
  sample(bf16, f32, {4, 3, 4, 4});
  sample(f16, f16, {8, 3});
  return op;
}
