#include "data/order/mixture.h"

#include <cmath>
#include <doctest/doctest.h>
#include <numeric>
#include <set>

#include <millrace/error.h>

#include "data/order/order.h"

using namespace millrace;
using namespace millrace::data;

namespace {

std::unique_ptr<Order> shuffled(int64_t count) { return parse_order("shuffle").make({count, {}, {}, {}}); }

Mixture mixture(std::vector<int64_t> counts, std::vector<double> shares) {
  std::vector<int64_t> first;
  std::vector<std::unique_ptr<Order>> orders;
  int64_t at = 0;
  for (const int64_t count : counts) {
    first.push_back(at);
    at += count;
    orders.push_back(shuffled(count));
  }
  return {first, std::move(orders), shares};
}

}  // namespace

TEST_CASE("a mixture draws its sources by their shares") {
  const Mixture mix = mixture({10, 20, 30}, {1, 0, 3});
  constexpr int64_t draws = 100'000;
  std::vector<int64_t> drawn(3);
  mix.skip(7, drawn, draws);
  CHECK(drawn[1] == 0);
  // Chi-square with one degree of freedom: 10.8 is passed by chance once in 1,000 seeds; this one is fixed.
  const double expected = draws / 4.0, d = static_cast<double>(drawn[0]) - expected;
  CHECK(d * d / expected + d * d / (3 * expected) < 10.8);
  CHECK(std::accumulate(drawn.begin(), drawn.end(), int64_t{0}) == draws);
}

TEST_CASE("each source of a mixture is gone through epoch by epoch in its own order") {
  const Mixture mix = mixture({10, 10}, {0.3, 0.7});
  std::vector<int64_t> drawn(2);
  std::vector<Pick> picks(400);
  mix.run(1, drawn, picks);
  std::vector<std::vector<int64_t>> sequences(2);
  for (const Pick& pick : picks) sequences[pick.index >= 10 ? 1 : 0].push_back(pick.index % 10);
  for (size_t source = 0; source < 2; ++source) {
    CHECK(static_cast<int64_t>(sequences[source].size()) == drawn[source]);
    for (size_t epoch = 0; (epoch + 1) * 10 <= sequences[source].size(); ++epoch) {
      const auto begin = sequences[source].begin() + static_cast<ptrdiff_t>(epoch * 10);
      CHECK(std::set<int64_t>(begin, begin + 10).size() == 10);
    }
  }
  // Sources of one size have orders of their own.
  CHECK(!std::equal(sequences[0].begin(), sequences[0].begin() + 10, sequences[1].begin()));
}

TEST_CASE("any place of a mixture can be gone to, also after the shares have changed") {
  Mixture mix = mixture({11, 23, 5}, {1, 1, 1});
  std::vector<int64_t> drawn(3);
  std::vector<Pick> before(100), after(50);
  mix.run(3, drawn, before);
  const std::vector<int64_t> at = drawn;
  mix.set_shares(std::vector<double>{0, 1, 5});
  mix.run(3, drawn, after);

  Mixture again = mixture({11, 23, 5}, {1, 1, 1});
  std::vector<int64_t> place(3);
  again.skip(3, place, 100);
  CHECK(place == at);
  again.set_shares(std::vector<double>{0, 1, 5});
  again.skip(3, place, 20);
  std::vector<Pick> rest(30);
  again.run(3, place, rest);
  CHECK(place == drawn);
  for (size_t i = 0; i < rest.size(); ++i) CHECK(rest[i].index == after[20 + i].index);
  for (const Pick& pick : after) CHECK(pick.index >= 11);
}

TEST_CASE("shares that are none are refused") {
  Mixture mix = mixture({3, 4}, {1, 1});
  for (const std::vector<double>& wrong :
       {std::vector<double>{1}, {1, -1}, {0, 0}, {1, NAN}, {INFINITY, 1}, {1, 1, 1}})
    CHECK_THROWS_AS(mix.set_shares(wrong), InputError);
}
