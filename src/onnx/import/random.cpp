// Random numbers that a model draws: of a node the same ones in each run, by its seed and the name of its
// result, so that a model answers alike; where a model is trained on, others in each step.
#include <bit>

#include "base/murmur3.h"
#include "onnx/import/call.h"

using namespace millrace;
using onnx::Item;

namespace {

/// f32, or f64 where that is the dtype.
Value drawn(onnx::ImportCall& call, std::string_view op, const Shape& shape, DType dtype) {
  Array key(i64, {2});
  key.set_int(0, std::bit_cast<int32_t>(static_cast<float>(call.number("seed", 0))));
  key.set_int(1, 0);
  const bool trains = call.learning && call.learning->training;
  return call.graph.add(op, {trains ? call.learning->key : call.constant(key)},
                        {{"shape", shape},
                         {"stream", static_cast<int64_t>(murmur3_32(call.node.outputs[0]))},
                         {"dtype", dtype == f64 ? f64 : f32}});
}

Value normal(onnx::ImportCall& call, const Shape& shape, DType dtype) {
  const Value x = call.b.mul(drawn(call, "random_normal", shape, dtype), call.number("scale", 1));
  return call.b.cast(call.b.add(x, call.number("mean", 0)), dtype);
}

Value uniform(onnx::ImportCall& call, const Shape& shape, DType dtype) {
  const double low = call.number("low", 0), high = call.number("high", 1);
  const Value x = call.b.mul(drawn(call, "random_uniform", shape, dtype), high - low);
  return call.b.cast(call.b.add(x, low), dtype);
}

/// As large as operand 0.
Item like(const onnx::ImportCall& call, Value value) {
  const Item& given = call.item(0);
  return call.bounded(0) ? Item::bounded(value, given.bounded_axis, given.size) : Item(value);
}

Shape said_shape(const onnx::ImportCall& call) { return Shape(call.ints("shape")); }
const Type& type_of_first(const onnx::ImportCall& call) { return call.graph.type(call.buffer(0)); }

}  // namespace

MILLRACE_ONNX_IMPORT(RandomNormal) { return {normal(call, said_shape(call), call.said_dtype(f32))}; }
MILLRACE_ONNX_IMPORT(RandomUniform) { return {uniform(call, said_shape(call), call.said_dtype(f32))}; }

MILLRACE_ONNX_IMPORT(RandomNormalLike) {
  const Type type = type_of_first(call);
  return {like(call, normal(call, type.shape, call.said_dtype(type.dtype)))};
}

MILLRACE_ONNX_IMPORT(RandomUniformLike) {
  const Type type = type_of_first(call);
  return {like(call, uniform(call, type.shape, call.said_dtype(type.dtype)))};
}

/// 1 with the probability that the operand says.
MILLRACE_ONNX_IMPORT(Bernoulli) {
  const Type type = type_of_first(call);
  const Value hit = call.graph.add(
      "less", {drawn(call, "random_uniform", type.shape, f64), call.b.cast(call.buffer(0), f64)});
  return {like(call, call.b.cast(hit, call.said_dtype(type.dtype)))};
}
