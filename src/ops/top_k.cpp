#include <millrace/onnx_rule.h>

#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(top_k) {
  Operator op;
  op.name = "top_k";
  op.op_class = OpClass::heavy;
  op.doc =
      "The `k` largest elements along the last dimension, the largest first, and their i64 positions there. "
      "Of equal elements the first one comes first.";
  op.attributes = {{"k", AttributeType::integer, "how many", {.low = 1}}};
  op.types = [](const TypeContext& c) {
    const Type& x = c.operands[0];
    const int64_t k = c.attributes.integer("k");
    if (x.dtype != f32 && x.dtype != f64) c.error("the elements must be f32 or f64");
    if (x.shape.rank() == 0 || !x.shape.back().is_static())
      c.error("the last dimension must be there and known");
    if (k > x.shape.back().size()) c.error("k must not exceed the size of the last dimension");
    Shape shape = x.shape;
    shape[shape.rank() - 1] = k;
    return std::vector<Type>{{x.dtype, shape}, {i64, shape}};
  };
  op.differentiable = false;
  op.errors = ErrorGrowth::decisive;
  op.flops = [](const Graph&, const Node&) { return 0.0; };  // comparisons
  const auto sample = [&](const Type& x, int64_t k) {
    op.samples.push_back({.operands = {x}, .attributes = {{"k", k}}});
  };
  sample({f32, {7}}, 3);
  sample({f32, {1}}, 1);
  sample({f64, {4, 33}}, 33);
  sample({f32, {0, 5}}, 2);
  sample({f32, {3, 2, 129}}, 40);
  sample({f32, {9, 1000}}, 5);
  sample({f64, {2, 5000}}, 200);
  op.samples.push_back({.operands = {{f32, {2, 5}}},
                        .attributes = {{"k", int64_t{4}}},
                        .values = {{0, {1, 3, 3, 1, 3, 0, 0, 0, 0, 0}}}});
  op.onnx = {"TopK"};
  op.onnx_rule = [](const OnnxCall& c) {
    return c.onnx.nodes("TopK", {c.operands[0], c.onnx.ints({c.attributes().integer("k")})}, 2);
  };
  return op;
}
