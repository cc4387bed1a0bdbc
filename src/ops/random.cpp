#include "ops/random.h"

namespace millrace::ops {
namespace {

Scalar shifted_right(ScalarBuilder& b, Scalar a, int by) {
  return b.binary(ScalarOp::shift_right, a, b.integer(b.dtype(a), by));
}

Scalar exclusive_or(ScalarBuilder& b, Scalar x, Scalar y) { return b.binary(ScalarOp::bit_xor, x, y); }

Scalar high_word(ScalarBuilder& b, Scalar wide) {
  return b.cast(shifted_right(b, b.cast(wide, u64), 32), u32);
}

}  // namespace

Operator random_operator(std::string_view name, std::string_view doc, DType dtype,
                         std::vector<std::string> dtypes) {
  Operator op;
  op.name = name;
  op.doc = doc;
  op.op_class = OpClass::generator;
  op.attributes = {
      {"shape", AttributeType::shape, "the result's shape"},
      {"stream", Attribute(int64_t{0}), "a number unique to each use", {.low = 0, .high = 0xFFFFFFFF}},
      {"dtype", Attribute(dtype), "the result's dtype", {.choices = std::move(dtypes)}}};
  op.differentiable = false;
  op.random = true;
  op.types = [](const TypeContext& c) {
    if (c.operands[0] != Type{i64, {2}}) c.error("the key must be i64[2]: seed and step");
    return std::vector<Type>{{c.attributes.dtype("dtype"), c.attributes.shape("shape")}};
  };
  return op;
}

Scalar flat_index(ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
  Scalar flat = b.integer(i64, 0);
  for (size_t d = 0; d < index.size(); ++d)
    flat = b.add(b.mul(flat, b.integer(i64, c.node.types[0].shape[d].size())), index[d]);
  return flat;
}

std::array<Scalar, 4> random_words(ElementBuilder& b, Scalar flat, const ElementContext& c) {
  const Scalar zero = b.integer(i64, 0), one = b.integer(i64, 1);
  const Scalar seed = b.load(0, std::array{zero}), step = b.load(0, std::array{one});
  std::array<Scalar, 4> counter = {b.cast(flat, u32), high_word(b, flat),
                                   b.integer(u32, c.node.attributes.integer("stream")), b.cast(step, u32)};
  std::array<Scalar, 2> key = {b.cast(seed, u32), high_word(b, seed)};
  for (int round = 0; round < 10; ++round) {
    const Scalar x = b.mul(b.cast(counter[0], u64), b.integer(u64, 0xD2511F53));
    const Scalar y = b.mul(b.cast(counter[2], u64), b.integer(u64, 0xCD9E8D57));
    counter = {exclusive_or(b, exclusive_or(b, high_word(b, y), counter[1]), key[0]), b.cast(y, u32),
               exclusive_or(b, exclusive_or(b, high_word(b, x), counter[3]), key[1]), b.cast(x, u32)};
    key = {b.add(key[0], b.integer(u32, 0x9E3779B9)), b.add(key[1], b.integer(u32, 0xBB67AE85))};
  }
  return counter;
}

Scalar random_whole(ScalarBuilder& b, Scalar high, Scalar low, int bits) {
  // Through signed integers: their conversion to float is the cheap one.
  if (bits <= 24) return b.cast(b.cast(shifted_right(b, high, 32 - bits), i32), f32);
  const Scalar upper = b.binary(ScalarOp::shift_left, b.cast(high, u64), b.integer(u64, bits - 32));
  const Scalar lower = b.cast(shifted_right(b, low, 64 - bits), u64);
  return b.cast(b.cast(b.binary(ScalarOp::bit_or, upper, lower), i64), f64);
}

Sample random_sample(const Shape& shape, Attributes attributes) {
  attributes.set("shape", shape);
  return {.operands = {{i64, {2}}}, .attributes = std::move(attributes), .values = {{0, {123456789, 42}}}};
}

}  // namespace millrace::ops
