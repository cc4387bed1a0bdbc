#include "data/feed/sequences/plan.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <set>

#include <millrace/error.h>
#include <millrace/random.h>

#include "data/encode/memory_texts.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

std::vector<int64_t> random_lengths(int64_t count, uint32_t most) {
  std::vector<int64_t> lengths;
  RandomStream random(7, 1);
  for (int64_t i = 0; i < count; ++i) lengths.push_back(1 + random.below(random.below(most) + 1));
  return lengths;
}

std::vector<std::vector<Extract>> rows_of(const EpochRows& plan, int64_t epoch, uint64_t seed = 3) {
  const auto rows_in = plan.epoch(seed, epoch);
  std::vector<std::vector<Extract>> rows(static_cast<size_t>(plan.count()));
  for (int64_t at = 0; at < plan.count(); ++at) rows_in->row(at, rows[static_cast<size_t>(at)]);
  return rows;
}

/// How often each token is in a row.
std::map<int64_t, int> covered(const std::vector<std::vector<Extract>>& rows) {
  std::map<int64_t, int> tokens;
  for (const auto& row : rows)
    for (const Extract& piece : row)
      for (int64_t i = 0; i < piece.size; ++i) ++tokens[piece.begin + i];
  return tokens;
}

bool same(const std::vector<std::vector<Extract>>& a, const std::vector<std::vector<Extract>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Extract& p, const Extract& q) {
      return p.begin == q.begin && p.size == q.size && p.text == q.text;
    });
  });
}

}  // namespace

TEST_CASE("windows begin elsewhere each epoch, never overlap, and stay within the texts") {
  const Texts texts = make_texts({300, 1, 500, 203});
  PlanOptions options;
  options.length = 16;
  options.batch = 4;
  options.next_token = true;
  const auto plan = window_plan(texts, options);
  std::set<int64_t> offsets;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    const auto rows = rows_of(*plan, epoch);
    CHECK(rows.size() == 60);  // of 62 whole ones less one, whole batches
    int64_t first = 1000;
    for (const auto& row : rows) {
      CHECK(row.size() == 1);
      CHECK(row[0].size == 16);
      CHECK(row[0].begin + 16 + 1 <= 1004);
      first = std::min(first, row[0].begin % 16);
    }
    for (const auto& [token, times] : covered(rows)) CHECK(times == 1);
    offsets.insert(first);
    CHECK(same(rows, rows_of(*plan, epoch)));
  }
  CHECK(offsets.size() > 8);
  CHECK(!same(rows_of(*plan, 0, 3), rows_of(*plan, 0, 4)));
}

TEST_CASE("windows begin at every offset that there is room for, up to a whole window") {
  const Texts texts = make_texts({13});
  PlanOptions options;
  options.length = 4;
  options.batch = 1;
  options.next_token = true;
  const auto plan = window_plan(texts, options);
  std::map<int64_t, int> offsets;
  for (int64_t epoch = 0; epoch < 500; ++epoch) {
    const auto rows = rows_of(*plan, epoch);
    REQUIRE(rows.size() == 2);
    ++offsets[std::min(rows[0][0].begin, rows[1][0].begin)];
  }
  CHECK(offsets.size() == 5);
  for (const auto& [offset, times] : offsets) CHECK(times > 60);
}

TEST_CASE("windows in order take every token once, the last one is shorter") {
  const Texts texts = make_texts({50, 51});
  PlanOptions options;
  options.length = 16;
  options.batch = 4;
  options.order = "sequential";
  options.whole_batches = options.whole_windows = false;
  options.next_token = true;
  const auto rows = rows_of(*window_plan(texts, options), 0);
  CHECK(rows.size() == 7);
  CHECK(covered(rows).size() == 100);  // all but the last token, which has nothing behind it
  CHECK(rows.back()[0].size == 4);
  options.length = 1000;
  options.whole_batches = true;
  CHECK_THROWS_WITH_AS(window_plan(texts, options), doctest::Contains("make length or batch smaller"),
                       InputError);
}

TEST_CASE(
    "packed rows hold every piece once, hardly more rows than needed, other texts together each epoch") {
  const std::vector<int64_t> lengths = random_lengths(2000, 60);
  const Texts texts = make_texts(lengths);
  PlanOptions options;
  options.length = 64;
  options.order = "shuffle";
  const auto plan = packed_plan(texts, options);
  int64_t tokens = 0;
  for (const int64_t length : lengths) tokens += length;
  CHECK(plan->count() <= tokens / 64 + 1 + tokens / 64 / 50);  // 2 % more than nothing wasted
  std::set<std::set<int64_t>> together[2];
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const auto rows = rows_of(*plan, epoch);
    const auto all = covered(rows);
    CHECK(static_cast<int64_t>(all.size()) == tokens);
    for (const auto& [token, times] : all) CHECK(times == 1);
    for (const auto& row : rows) {
      int64_t size = 0;
      std::set<int64_t> members;
      for (const Extract& piece : row) {
        size += piece.size;
        members.insert(piece.text);
      }
      CHECK(size <= 64);
      if (members.size() > 1) together[epoch].insert(members);
    }
    CHECK(same(rows, rows_of(*plan, epoch)));
  }
  std::vector<std::set<int64_t>> both;
  std::set_intersection(together[0].begin(), together[0].end(), together[1].begin(), together[1].end(),
                        std::back_inserter(both));
  CHECK(both.size() < together[0].size() / 4);
}

TEST_CASE("packing cuts texts longer than a row, and leaves out what has no next token") {
  const Texts texts = make_texts({25, 1, 0, 9, 10});
  PlanOptions options;
  options.length = 8;
  options.next_token = true;
  options.order = "sequential";
  const auto rows = rows_of(*packed_plan(texts, options), 0);
  const auto all = covered(rows);
  CHECK(all.size() == 24 + 8 + 9);  // a text's last token is only a target
  CHECK(!all.contains(24));
  CHECK(!all.contains(25));
  options.order = "weighted w";
  CHECK_THROWS_WITH_AS(packed_plan(texts, options), doctest::Contains("\"shuffle\" or \"sequential\""),
                       InputError);
}

TEST_CASE("buckets give every text once, batches of similar length, and other batches each epoch") {
  const std::vector<int64_t> lengths = random_lengths(1000, 100);
  const Texts texts = make_texts(lengths, 1000, 2);
  PlanOptions options;
  options.length = 64;
  options.batch = 8;
  options.buckets = {8, 24, 64};
  const auto plan = bucket_plan(std::make_shared<const Texts>(texts), options);
  CHECK(plan->count() == 1000);
  std::vector<std::vector<Extract>> before;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const auto rows = rows_of(*plan, epoch);
    const auto of_epoch = plan->epoch(3, epoch);
    std::set<int64_t> seen;
    int64_t padding = 0, descents = 0;
    for (int64_t at = 0; at < plan->count(); ++at) {
      const Extract& piece = rows[static_cast<size_t>(at)][0];
      const int64_t length = of_epoch->length(at / 8 * 8);
      CHECK(piece.size <= length);
      CHECK(piece.size == std::min<int64_t>(lengths[static_cast<size_t>(piece.text)], 64));
      padding += length - piece.size;
      seen.insert(piece.text);
      descents += at > 0 && at % 8 == 0 && length < of_epoch->length(at - 8);
    }
    CHECK(seen.size() == 1000);
    CHECK(descents > 10);  // batches come at random
    CHECK(padding < 1000 * 12);
    CHECK(!same(rows, before));
    before = rows;
    CHECK(same(rows, rows_of(*plan, epoch)));
  }
  options.order = "importance w";
  CHECK_THROWS_AS(bucket_plan(std::make_shared<const Texts>(texts), options), InputError);
}

TEST_CASE("the last batch of a test is the partial one") {
  const Texts texts = make_texts(random_lengths(21, 30), 1000, 3);
  PlanOptions options;
  options.length = 32;
  options.batch = 8;
  options.whole_batches = false;
  options.order = "sequential";
  options.buckets = {16, 32};
  const auto plan = bucket_plan(std::make_shared<const Texts>(texts), options);
  CHECK(plan->count() == 21);
  CHECK(covered(rows_of(*plan, 0)).size() == static_cast<size_t>(texts.begins.back()));
  CHECK(plan->epoch(3, 0)->length(16) == 32);
}

TEST_CASE("the best buckets waste no more than any others") {
  const std::vector<int64_t> lengths = random_lengths(300, 80);
  const auto places = [&](const std::vector<int64_t>& buckets) {
    int64_t sum = 0;
    for (const int64_t length : lengths)
      sum += *std::lower_bound(buckets.begin(), buckets.end(), std::min<int64_t>(length, 64));
    return sum;
  };
  const std::vector<int64_t> found = best_buckets(lengths, 64, 3);
  REQUIRE(found.size() == 3);
  CHECK(found.back() == 64);
  int64_t least = places(found);
  for (int64_t a = 8; a < 64; a += 8)
    for (int64_t b = a + 8; b < 64; b += 8) CHECK(places({a, b, 64}) >= least);
  CHECK(best_buckets({5, 6, 7}, 64, 4) == std::vector<int64_t>{8});
  CHECK(best_buckets({5, 100}, 20, 2) == std::vector<int64_t>{8, 20});
  CHECK(best_buckets({0}, 4, 1) == std::vector<int64_t>{4});
}
