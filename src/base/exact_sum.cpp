#include <bit>
#include <cmath>
#include <limits>

#include <millrace/exact_sum.h>

namespace millrace {

void ExactSum::add(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const int exponent = static_cast<int>(bits >> 52 & 0x7FF);
  if (exponent == 0x7FF) {
    (std::isnan(x) ? nan_ : x > 0 ? plus_infinite_ : minus_infinite_) = true;
    return;
  }
  if (waiting_ == most_waiting) carry();
  ++waiting_;
  uint64_t digits = bits & ((uint64_t{1} << 52) - 1);
  if (exponent > 0) digits |= uint64_t{1} << 52;  // the others are subnormal
  const int at = exponent > 0 ? exponent - 1 : 0, shift = at & 31;
  int64_t* const limb = limb_.data() + (at >> 5);
  const auto low = static_cast<int64_t>(digits << shift & 0xFFFFFFFF);
  digits >>= 32 - shift;
  const auto middle = static_cast<int64_t>(digits & 0xFFFFFFFF), high = static_cast<int64_t>(digits >> 32);
  if (bits >> 63) {
    limb[0] -= low;
    limb[1] -= middle;
    limb[2] -= high;
  } else {
    limb[0] += low;
    limb[1] += middle;
    limb[2] += high;
  }
}

void ExactSum::add_product(double a, double b) {
  const double product = a * b;
  add(product);
  if (std::isfinite(product)) add(std::fma(a, b, -product));
}

void ExactSum::merge(const ExactSum& other) {
  nan_ |= other.nan_;
  plus_infinite_ |= other.plus_infinite_;
  minus_infinite_ |= other.minus_infinite_;
  // After a carry limbs are as if one number had been added.
  if (waiting_ + other.waiting_ + 2 > most_waiting) {
    carry();
    if (waiting_ + other.waiting_ + 2 > most_waiting) {
      ExactSum carried = other;
      carried.carry();
      return merge(carried);
    }
  }
  for (int i = 0; i < limbs; ++i) limb_[i] += other.limb_[i];
  waiting_ += other.waiting_ + 1;
}

/// Makes all limbs but the last 0 … 2^32 − 1; the last keeps the sign.
void ExactSum::carry() {
  for (int i = 0; i + 1 < limbs; ++i) {
    limb_[i + 1] += limb_[i] >> 32;  // rounds downward
    limb_[i] &= 0xFFFFFFFF;
  }
  waiting_ = 0;
}

double ExactSum::value() const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (nan_ || (plus_infinite_ && minus_infinite_)) return std::numeric_limits<double>::quiet_NaN();
  if (plus_infinite_ || minus_infinite_) return plus_infinite_ ? infinity : -infinity;
  ExactSum sum = *this;
  sum.carry();
  const bool negative = sum.limb_.back() < 0;
  if (negative) {
    for (int64_t& limb : sum.limb_) limb = -limb;
    sum.carry();
  }
  int top = limbs - 1;
  while (top > 0 && sum.limb_[top] == 0) --top;
  const auto limb = [&](int i) { return i < 0 ? uint64_t{0} : static_cast<uint64_t>(sum.limb_[i]); };
  // The first 64 bits from the highest one on; whether any after them is set is all that rounding needs to
  // know of the rest.
  uint64_t digits = limb(top) << 32 | limb(top - 1);
  int exponent = 32 * (top - 1) - 1074;
  if (top == 0) {
    digits = limb(0);
    exponent = -1074;
  } else {
    // The highest limb is not 0, so that there are fewer than 32.
    const int space = std::countl_zero(digits);
    const uint64_t next = limb(top - 2);
    digits = digits << space | next >> (32 - space);
    exponent -= space;
    bool more = (next & ((uint64_t{1} << (32 - space)) - 1)) != 0;
    for (int i = top - 3; i >= 0 && !more; --i) more = sum.limb_[i] != 0;
    digits |= more;
  }
  // With fewer than 54 bits there is nothing to round, else the result is no subnormal: it is rounded here,
  // and only here.
  const double result = std::ldexp(static_cast<double>(digits), exponent);
  return negative ? -result : result;
}

std::vector<double> ExactSum::parts() const {
  std::vector<double> list;
  ExactSum rest = *this;
  for (double part = rest.value(); part != 0; part = rest.value()) {
    list.push_back(part);
    if (!std::isfinite(part)) break;
    rest.add(-part);
  }
  return list;
}

}  // namespace millrace
