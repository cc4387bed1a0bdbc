#include "data/feed/streams/reservoir.h"

#include <cmath>
#include <doctest/doctest.h>
#include <set>

#include <millrace/error.h>

#include "base/format.h"
#include "support/pictures.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

/// The items kept of `total`, by place.
std::vector<int64_t> kept(int64_t size, int64_t total, uint64_t seed) {
  Reservoir reservoir(size, seed);
  std::vector<int64_t> items(static_cast<size_t>(std::min(size, total)));
  for (int64_t item = 0; item < total; ++item)
    if (const int64_t place = reservoir.next(); place >= 0) items.at(static_cast<size_t>(place)) = item;
  return items;
}

}  // namespace

TEST_CASE("a reservoir keeps every item equally often, whatever its place, and so every pair") {
  // By chi-square: counts of items have 49 degrees of freedom (0.999 quantile 85.4), pairs of 10 items in a
  // sample of 3 have 44 (78.7); each seed is fixed.
  constexpr int64_t rounds = 20'000, total = 50, size = 5;
  std::vector<double> counts(total);
  for (int64_t seed = 0; seed < rounds; ++seed) {
    const std::vector<int64_t> items = kept(size, total, static_cast<uint64_t>(seed));
    CHECK(std::set<int64_t>(items.begin(), items.end()).size() == size);
    for (const int64_t item : items) ++counts[static_cast<size_t>(item)];
  }
  double square = 0, expected = static_cast<double>(rounds * size) / total;
  for (const double count : counts) square += (count - expected) * (count - expected) / expected;
  // Items of one sample exclude each other: counts vary by (1 - size / total) less, which the bound takes in.
  CHECK(square / (1 - static_cast<double>(size) / total) * (total - 1) / total < 85.4);
  CHECK(square > 15);  // and not as if they were counted off (0.001 quantile 23.98 of the scaled value)

  std::vector<double> pairs(100);
  for (int64_t seed = 0; seed < rounds; ++seed) {
    const std::vector<int64_t> items = kept(3, 10, static_cast<uint64_t>(seed) + 1'000'000);
    for (const int64_t a : items)
      for (const int64_t b : items)
        if (a < b) ++pairs[static_cast<size_t>(10 * a + b)];
  }
  square = 0;
  expected = rounds * 3.0 / 45;
  for (size_t a = 0; a < 10; ++a)
    for (size_t b = a + 1; b < 10; ++b) square += std::pow(pairs[10 * a + b] - expected, 2) / expected;
  CHECK(square < 78.7);
}

TEST_CASE("a reservoir larger than the stream keeps all, and long streams cost few random numbers") {
  const std::vector<int64_t> all = kept(10, 4, 1);
  CHECK(all == std::vector<int64_t>{0, 1, 2, 3});
  // A sample of 1 of 10^6 is changed about ln(10^6) ≈ 14 times; of late items too.
  double sum = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) sum += static_cast<double>(kept(1, 100'000, seed)[0]);
  CHECK(sum / 200 == doctest::Approx(50'000).epsilon(0.15));  // three deviations
  CHECK_THROWS_AS(Reservoir(0, 1), InputError);
}

TEST_CASE("a sample of a stream is whole samples in their order, by its seed") {
  const TempFolder folder;
  const std::string path = (folder / "a.csv").string();
  std::string text = "n,name\n";
  for (int i = 0; i < 1000; ++i) text += fmt::format("{},\"a\nb {}\"\n", i, i);
  put_file(path, text);
  const auto numbers = [&](const std::string& from, uint64_t seed) {
    const auto stream = open_stream(from);
    const StreamSampled sampled = sample_stream(*stream, 20, seed);
    CHECK(sampled.total == 1000);
    std::vector<int64_t> list;
    for (int64_t i = 0; i < sampled.samples->count(); ++i) {
      list.push_back(std::get<int64_t>(sampled.samples->read(i, 0)));
      CHECK(std::get<std::string>(sampled.samples->read(i, 1)) == fmt::format("a\nb {}", list.back()));
    }
    CHECK(std::is_sorted(list.begin(), list.end()));
    CHECK(list.size() == 20);
    return list;
  };
  CHECK(numbers(path, 1) == numbers("pipe:cat " + path, 1));
  CHECK(numbers(path, 1) != numbers(path, 2));
}
