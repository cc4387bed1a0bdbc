#include <cmath>
#include <doctest/doctest.h>
#include <numeric>
#include <set>

#include <millrace/error.h>

#include "data/feed/row_plan.h"
#include "data/order/order.h"

using namespace millrace;
using namespace millrace::data;

namespace {

std::unique_ptr<RowPlan> mixture_of(const std::vector<int64_t>& counts, const std::vector<double>& shares) {
  std::vector<int64_t> first;
  std::vector<std::unique_ptr<Order>> orders;
  int64_t at = 0;
  for (const int64_t count : counts) {
    first.push_back(at);
    at += count;
    orders.push_back(parse_order("shuffle").make({count, {}, {}, {}}));
  }
  return mixed_rows(std::move(first), std::move(orders), shares, "mixed");
}

Cursor begin_of(const RowPlan& mix, uint64_t seed) {
  Cursor at{seed, 0, 0};
  mix.complete(at);
  return at;
}

/// The samples of the next rows, behind which the cursor then is.
std::vector<int64_t> taken_rows(const RowPlan& mix, Cursor& at, size_t count) {
  std::vector<RowPick> rows(count);
  mix.take(at, rows);
  mix.advance(at, static_cast<int64_t>(count));
  std::vector<int64_t> samples;
  for (const RowPick& row : rows) samples.push_back(row.pick.index);
  return samples;
}

}  // namespace

TEST_CASE("a mixture draws its sources by their shares") {
  const auto mix = mixture_of({10, 20, 30}, {1, 0, 3});
  constexpr int64_t draws = 100'000;
  Cursor at = begin_of(*mix, 7);
  mix->advance(at, draws);
  const auto drawn = std::span(at.state).subspan(2);
  CHECK(drawn[1] == 0);
  // Chi-square with one degree of freedom: 10.8 is passed by chance once in 1,000 seeds; this one is fixed.
  const double expected = draws / 4.0, d = static_cast<double>(drawn[0]) - expected;
  CHECK(d * d / expected + d * d / (3 * expected) < 10.8);
  CHECK(std::accumulate(drawn.begin(), drawn.end(), int64_t{0}) == draws);
}

TEST_CASE("each source of a mixture is gone through epoch by epoch in its own order") {
  const auto mix = mixture_of({10, 10}, {0.3, 0.7});
  Cursor at = begin_of(*mix, 1);
  std::vector<std::vector<int64_t>> sequences(2);
  for (const int64_t sample : taken_rows(*mix, at, 400))
    sequences[sample >= 10 ? 1 : 0].push_back(sample % 10);
  for (size_t source = 0; source < 2; ++source) {
    CHECK(static_cast<int64_t>(sequences[source].size()) == at.state[2 + source]);
    for (size_t epoch = 0; (epoch + 1) * 10 <= sequences[source].size(); ++epoch) {
      const auto begin = sequences[source].begin() + static_cast<ptrdiff_t>(epoch * 10);
      CHECK(std::set<int64_t>(begin, begin + 10).size() == 10);
    }
  }
  // Sources of one size have orders of their own.
  CHECK(!std::equal(sequences[0].begin(), sequences[0].begin() + 10, sequences[1].begin()));
}

TEST_CASE("any place of a mixture can be gone to, also after the shares have changed") {
  const auto mix = mixture_of({11, 23, 5}, {1, 1, 1});
  Cursor at = begin_of(*mix, 3);
  (void)taken_rows(*mix, at, 100);
  const Cursor changed = at;
  mix->set_shares(std::vector<double>{0, 1, 5});
  const std::vector<int64_t> after = taken_rows(*mix, at, 50);

  const auto again = mixture_of({11, 23, 5}, {1, 1, 1});
  Cursor place = begin_of(*again, 3);
  again->advance(place, 100);
  CHECK(place == changed);
  again->set_shares(std::vector<double>{0, 1, 5});
  again->advance(place, 20);
  const std::vector<int64_t> rest = taken_rows(*again, place, 30);
  CHECK(place == at);
  for (size_t i = 0; i < rest.size(); ++i) CHECK(rest[i] == after[20 + i]);
  for (const int64_t sample : after) CHECK(sample >= 11);
}

TEST_CASE("shares that are none are refused") {
  const auto mix = mixture_of({3, 4}, {1, 1});
  for (const std::vector<double>& wrong :
       {std::vector<double>{1}, {1, -1}, {0, 0}, {1, NAN}, {INFINITY, 1}, {1, 1, 1}})
    CHECK_THROWS_AS(mix->set_shares(wrong), InputError);
}
