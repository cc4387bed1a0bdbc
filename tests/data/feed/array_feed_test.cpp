#include "data/feed/array_feed.h"

#include <cstring>
#include <doctest/doctest.h>
#include <map>

#include <millrace/error.h>

using namespace millrace;
using namespace millrace::data;

namespace {

/// Rows whose values say their number.
std::shared_ptr<ArrayData> rows(int64_t count) {
  auto data = std::make_shared<ArrayData>();
  data->inputs = {{"a", Array(f32, {count, 2})}, {"b", Array(i64, {count, 1})}};
  for (int64_t i = 0; i < count; ++i) {
    data->inputs[0].rows.set(2 * i, static_cast<double>(i));
    data->inputs[1].rows.set_int(i, 10 * i);
    data->labels.push_back(i % 3);
  }
  data->classes = {"x", "y", "z"};
  data->path = "rows";
  return data;
}

std::vector<float> first_input(const FeedBatch& batch) {
  std::vector<float> values(batch.arrays[0].size() / sizeof(float));
  std::memcpy(values.data(), batch.arrays[0].data(), batch.arrays[0].size());
  return values;
}

}  // namespace

TEST_CASE(
    "rows of arrays come once an epoch, with what belongs to them, and again after a cursor is put back") {
  const auto feed = array_feed(rows(10), {.batch = 4, .seed = 3});
  CHECK(feed->fields().size() == 3);
  CHECK(feed->fields()[0].type == Type{f32, {Dim::named("batch"), 2}});
  CHECK(feed->batches_per_epoch() == 2);
  CHECK(feed->count() == 10);
  std::map<float, int> seen;
  std::vector<std::vector<float>> all;
  for (int b = 0; b < 4; ++b) {
    const FeedBatch& batch = feed->next();
    CHECK(batch.start == Cursor{3, b / 2, 4 * (b % 2)});
    all.push_back(first_input(batch));
    for (size_t i = 0; i < 4; ++i) {
      const auto row = static_cast<int64_t>(all.back()[2 * i]);
      int64_t id = 0;
      std::memcpy(&id, batch.arrays[1].data() + 8 * i, 8);
      CHECK(id == 10 * row);
      CHECK(batch.targets[i] == row % 3);
      if (b < 2) ++seen[all.back()[2 * i]];
    }
  }
  CHECK(seen.size() == 8);
  CHECK(all[0] != all[2]);
  feed->seek({3, 1, 4});
  CHECK(first_input(feed->next()) == all[3]);
  feed->seek({3, 0, 8});
  CHECK(feed->cursor() == Cursor{3, 1, 0});
  CHECK_THROWS_WITH_AS(feed->seek({3, 0, 3}), doctest::Contains("no batch begins"), InputError);
  CHECK_THROWS_WITH_AS(array_feed(rows(3), {.batch = 4}), doctest::Contains("fewer than a batch"),
                       InputError);
  CHECK(array_feed(rows(10), {.batch = 4})->digest() == array_feed(rows(10), {.batch = 2})->digest());
  CHECK(array_feed(rows(10), {.batch = 4})->digest() != array_feed(rows(11), {.batch = 4})->digest());
}

TEST_CASE("the last batch of a test set is padded, and changes are drawn by place") {
  const auto test = array_feed(rows(5), {.batch = 4, .order = "sequential", .whole_batches = false});
  (void)test->next();
  const FeedBatch& last = test->next();
  CHECK(last.valid == 1);
  CHECK(last.targets[0] == 1);
  CHECK(last.targets[1] == -1);
  ArrayFeedOptions options{.batch = 4, .seed = 9};
  options.change = [](std::span<float> row, RandomStream& random) { row[1] = random.uniform(); };
  const auto a = array_feed(rows(8), options), b = array_feed(rows(8), options);
  const auto first = first_input(a->next());
  const auto second = first_input(a->next());
  b->seek({9, 0, 4});
  CHECK(first_input(b->next()) == second);
  CHECK(first[1] != first[3]);
  CHECK(first[1] != second[1]);
}
