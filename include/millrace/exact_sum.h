// A sum of doubles without rounding errors.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace millrace {

/// Sums doubles exactly, in a fixed-point number as wide as all doubles together (R. M. Neal, "Fast exact
/// summation using small and large superaccumulators", 2015). So value() has the same bits in whatever order,
/// and in whatever parts, numbers were added. Up to 2^63 numbers. A NaN, or infinities of both signs, make
/// the sum NaN; infinities of one sign make it that infinity.
class ExactSum {
 public:
  void add(double x);
  /// a · b, exact, too, except for what is below the smallest double (4.9e-324); infinite where the product
  /// overflows.
  void add_product(double a, double b);
  void merge(const ExactSum& other);

  /// The sum, rounded once, to nearest, ties to even: +0 for nothing, infinite when it is beyond the largest
  /// double.
  double value() const;
  /// Doubles whose sum is exactly this one, largest first and few; empty for 0. value() alone where that is
  /// not finite.
  std::vector<double> parts() const;

 private:
  // Number i counts units of 2^(32 i − 1074): 64 for the bits of doubles, one for the rest of the largest,
  // and room for carries.
  static constexpr int limbs = 68;
  // Each add changes a limb by less than 2^32: carries can wait for 2^30 of them.
  static constexpr int64_t most_waiting = int64_t{1} << 30;

  void carry();

  std::array<int64_t, limbs> limb_{};
  int64_t waiting_ = 0;  // adds since carry(), at most
  bool nan_ = false, plus_infinite_ = false, minus_infinite_ = false;
};

}  // namespace millrace
