#include "base/moments.h"

#include <cmath>
#include <doctest/doctest.h>
#include <span>
#include <vector>

#include <millrace/random.h>

using namespace millrace;

namespace {

Moments moments_of(std::span<const double> numbers) {
  Moments moments;
  for (const double x : numbers) moments.add(x);
  return moments;
}

}  // namespace

TEST_CASE("moments are the mean and the deviation, of no numbers 0") {
  const std::vector<double> numbers = {2, 4, 4, 4, 5, 5, 7, 9};
  const Moments moments = moments_of(numbers), none;
  CHECK(moments.count() == 8);
  CHECK(moments.mean() == 5);
  CHECK(moments.spread() == 32);
  CHECK(moments.deviation() == 2);
  CHECK(none.mean() == 0);
  CHECK(none.deviation() == 0);
}

TEST_CASE("moments lose nothing where the mean is large, and numbers that are alike have no spread") {
  const Moments moments = moments_of(std::vector<double>{1e15 + 1, 1e15 + 2, 1e15 + 3});
  CHECK(moments.mean() == 1e15 + 2);
  CHECK(moments.spread() == 2);
  for (const size_t count : {1, 3, 7, 1000}) {
    CHECK(moments_of(std::vector<double>(count, 0.1)).spread() == 0);
    CHECK(moments_of(std::vector<double>(count, 0.1)).mean() == 0.1);
  }
}

TEST_CASE("moments have the same bits in whatever order and parts numbers are added") {
  RandomStream random(5, 6);
  std::vector<double> numbers;
  for (int i = 0; i < 1000; ++i)
    numbers.push_back(std::exp(40 * random.uniform()) * (random.uniform() - 0.3));
  const Moments whole = moments_of(numbers);
  for (const size_t cut : {0, 1, 17, 999, 1000}) {
    Moments parts = moments_of(std::span(numbers).subspan(cut));
    parts.merge(moments_of(std::span(numbers).first(cut)));
    CHECK(parts.count() == whole.count());
    CHECK(parts.mean() == whole.mean());
    CHECK(parts.spread() == whole.spread());
  }
}
