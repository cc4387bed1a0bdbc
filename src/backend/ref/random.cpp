// Random numbers from philox(), element by element.
#include <array>
#include <cmath>
#include <numbers>

#include <millrace/random.h>

#include "backend/ref/registry.h"

using namespace millrace;

namespace {

std::array<uint32_t, 4> words(const Node& node, const Array& key, int64_t i) {
  const auto seed = static_cast<uint64_t>(key.int_at(0)), at = static_cast<uint64_t>(i);
  return philox(
      {static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32),
       static_cast<uint32_t>(node.attributes.integer("stream")), static_cast<uint32_t>(key.int_at(1))},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

/// B. Widynski, arXiv 2004.06278, as printed there.
uint64_t squares64(uint64_t counter, uint64_t key) {
  const uint64_t y = counter * key, z = y + key;
  uint64_t x = y;
  x = x * x + y, x = x >> 32 | x << 32;
  x = x * x + z, x = x >> 32 | x << 32;
  x = x * x + y, x = x >> 32 | x << 32;
  const uint64_t t = x = x * x + z;
  x = x >> 32 | x << 32;
  return t ^ ((x * x + y) >> 32);
}

/// The upper `bits` of two words as a whole number.
double whole(uint32_t high, uint32_t low, int bits) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> (64 - bits));
}

}  // namespace

MILLRACE_REF(random_uniform) {
  Array out(node.types[0]);
  const DType dtype = out.dtype();
  const int bits = dtype == f64 ? 53 : dtype == f32 ? 24 : dtype == f16 ? 11 : 8;
  for (int64_t i = 0; i < out.count(); ++i) {
    const auto w = words(node, operands[0], i);
    out.set(i, std::ldexp(whole(w[0], w[1], bits), -bits));
  }
  return {out};
}

MILLRACE_REF(random_normal) {
  Array out(node.types[0]);
  const int bits = out.dtype() == f64 ? 53 : 24;
  for (int64_t i = 0; i < out.count(); ++i) {
    const auto w = words(node, operands[0], i);
    const double u = std::ldexp(whole(w[0], w[1], bits) + 1, -bits),
                 turn = std::ldexp(whole(w[2], w[3], bits), -bits);
    out.set(i, std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * turn));
  }
  return {out};
}

MILLRACE_REF(random_bernoulli) {
  Array out(node.types[0]);
  const double limit = std::round(std::ldexp(node.attributes.number("p"), 32));
  for (int64_t i = 0; i < out.count(); ++i) out.set(i, words(node, operands[0], i)[0] < limit);
  return {out};
}

MILLRACE_REF(random_bits) {
  Array out(node.types[0]);
  const auto first = words(node, operands[0], 0);
  const uint64_t key = uint64_t{first[0]} << 32 | first[1] | 1;
  for (int64_t i = 0; i < out.count(); ++i) {
    const uint64_t bits = squares64(static_cast<uint64_t>(i), key);
    out.set_int(i, out.dtype() == i32 ? static_cast<int32_t>(bits >> 32) : static_cast<int64_t>(bits));
  }
  return {out};
}
