#include <algorithm>
#include <bit>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

#include <millrace/exact_sum.h>
#include <millrace/random.h>

using namespace millrace;

namespace {

using Limits = std::numeric_limits<double>;

double exact_sum_of(const std::vector<double>& numbers) {
  ExactSum sum;
  for (const double x : numbers) sum.add(x);
  return sum.value();
}

/// Doubles of any exponent and sign: random bits, those without a number left out.
std::vector<double> any_doubles(uint64_t seed, size_t count) {
  std::vector<double> numbers;
  for (uint32_t i = 0; numbers.size() < count; ++i) {
    const auto bits = philox({i, 0, 0, 0}, {static_cast<uint32_t>(seed), 7});
    const auto x = std::bit_cast<double>(uint64_t{bits[0]} << 32 | bits[1]);
    if (std::isfinite(x)) numbers.push_back(x);
  }
  return numbers;
}

}  // namespace

TEST_CASE("an exact sum keeps what rounding would lose") {
  CHECK(exact_sum_of({}) == 0);
  CHECK(exact_sum_of({1e100, 1, -1e100}) == 1);
  CHECK(exact_sum_of({1, Limits::denorm_min(), -1}) == Limits::denorm_min());
  CHECK(exact_sum_of({Limits::max(), Limits::max(), -Limits::max(), -Limits::max(), 3}) == 3);
  CHECK(exact_sum_of({Limits::max(), Limits::max()}) == Limits::infinity());
  CHECK(exact_sum_of({-Limits::max(), -Limits::max()}) == -Limits::infinity());
  CHECK(exact_sum_of({-1, -2.5}) == -3.5);
  // As math.fsum of Python, whose documentation has this example.
  CHECK(exact_sum_of(std::vector<double>(10, 0.1)) == 1.0);
}

TEST_CASE("an exact sum of one number is that number, whatever its exponent") {
  for (const double x : any_doubles(1, 3000)) {
    ExactSum sum;
    sum.add(x);
    CHECK(sum.value() == x);
    sum.add(-x);
    CHECK(sum.value() == 0);
  }
  for (const double x :
       {Limits::denorm_min(), Limits::min(), std::nextafter(Limits::min(), 0), Limits::max()})
    CHECK(exact_sum_of({x}) == x);
}

TEST_CASE("an exact sum is rounded once, ties to even, in normal and in subnormal numbers") {
  const double half = std::ldexp(1, -53);  // of the last bit of 1
  CHECK(exact_sum_of({1, half}) == 1);
  CHECK(exact_sum_of({std::nextafter(1, 2), half}) == 1 + 4 * half);
  CHECK(exact_sum_of({1, half, 1e-300}) == std::nextafter(1, 2));
  CHECK(exact_sum_of({1, half, -1e-300}) == 1);
  CHECK(exact_sum_of({-1, -half, -Limits::denorm_min()}) == std::nextafter(-1, -2));
  // Half of the last bit beyond 64 bits, and nothing or something far below it.
  CHECK(exact_sum_of({std::ldexp(1, 200), std::ldexp(1, 147)}) == std::ldexp(1, 200));
  CHECK(exact_sum_of({std::ldexp(1, 200), std::ldexp(1, 147), 1}) ==
        std::nextafter(std::ldexp(1, 200), 1e300));
  CHECK(exact_sum_of({Limits::min(), -Limits::denorm_min()}) == std::nextafter(Limits::min(), 0));
  // The largest double, and half of its last bit: that rounds to infinity; anything less does not.
  const double last = std::ldexp(1, 970);
  CHECK(exact_sum_of({Limits::max(), last}) == Limits::infinity());
  CHECK(exact_sum_of({Limits::max(), last, -1}) == Limits::max());
}

TEST_CASE("sums of two agree with the processor's addition, which rounds exactly too") {
  const std::vector<double> a = any_doubles(2, 2000), b = any_doubles(3, 2000);
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(exact_sum_of({a[i], b[i]}) == a[i] + b[i]);
    // Of like size, where bits overlap.
    int exponent = 0;
    const double near = std::ldexp(std::frexp(b[i], &exponent), std::ilogb(a[i]) - 20);
    CHECK(exact_sum_of({a[i], near}) == a[i] + near);
  }
}

TEST_CASE("order and parts leave an exact sum as it is") {
  std::vector<double> numbers = any_doubles(4, 500);
  for (double& x : numbers) x = std::ldexp(x, -60);  // the sum stays finite
  const double whole = exact_sum_of(numbers);
  for (uint32_t trial = 0; trial < 20; ++trial) {
    for (uint32_t i = 0; i < numbers.size(); ++i)
      std::swap(numbers[i], numbers[philox({i, trial, 0, 0}, {5, 6})[0] % numbers.size()]);
    ExactSum parts[3], sum;
    for (uint32_t i = 0; i < numbers.size(); ++i)
      parts[philox({i, trial, 1, 0}, {5, 6})[0] % 3].add(numbers[i]);
    for (const ExactSum& part : parts) sum.merge(part);
    CHECK(sum.value() == whole);
  }
}

TEST_CASE("merging doubles a sum as often as the number can hold it") {
  ExactSum sum;
  sum.add(-1.5);
  sum.add(1e-5);
  // More adds than can wait for their carries, both for the sum and for what is merged into it.
  for (int i = 0; i < 40; ++i) {
    const ExactSum same = sum;
    sum.merge(same);
  }
  ExactSum one;
  one.add(-1.5);
  one.add(1e-5);
  CHECK(sum.value() == std::ldexp(one.value(), 40));
}

TEST_CASE("infinities and NaN come through sums and merges") {
  constexpr double infinity = Limits::infinity();
  CHECK(exact_sum_of({infinity, 1, -1e308}) == infinity);
  CHECK(exact_sum_of({-infinity, 1}) == -infinity);
  CHECK(std::isnan(exact_sum_of({infinity, -infinity})));
  CHECK(std::isnan(exact_sum_of({1, Limits::quiet_NaN(), infinity})));
  ExactSum plus, minus;
  plus.add(infinity);
  minus.add(-infinity);
  plus.merge(minus);
  CHECK(std::isnan(plus.value()));
}

TEST_CASE("products are exact, and parts sum up to all of it") {
  ExactSum sum;
  const double a = 1 + std::ldexp(1, -52);
  sum.add_product(a, a);  // 1 + 2^-51 + 2^-104
  sum.add(-1);
  sum.add(-std::ldexp(1, -51));
  CHECK(sum.value() == std::ldexp(1, -104));
  ExactSum large;
  large.add_product(1e200, 1e200);
  CHECK(large.value() == Limits::infinity());
  CHECK(large.parts() == std::vector<double>{Limits::infinity()});

  ExactSum wide;
  for (const double x : {1e200, 3.0, -1e-200, 1e-30}) wide.add(x);
  const std::vector<double> parts = wide.parts();
  CHECK(parts.size() == 4);
  for (const double part : parts) wide.add(-part);
  CHECK(wide.value() == 0);
  CHECK(wide.parts().empty());
}
