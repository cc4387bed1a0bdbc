#include "data/feed/array_part.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/format.h"
#include "support/feed_samples.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

/// a f32 [3] and b i64: of sample i all are i, negative in b. Sample 4 has none.
std::shared_ptr<const ArrayPart> two_arrays(bool bad_samples, bool has_four = false) {
  const Dim batch = Dim::named("batch");
  return std::make_shared<ArrayPart>(
      std::vector<Field>{{"a", {f32, {batch, 3}}}, {"b", {i64, {batch}}}},
      [=](const Dataset& from, int64_t first, int64_t count, std::span<std::byte* const> rows) {
        for (int64_t i = 0; i < count; ++i) {
          if (first + i == 4 && !has_four) fail<InputError>("{}: has no number", from.name(4));
          for (int64_t k = 0; k < 3; ++k)
            reinterpret_cast<float*>(rows[0])[3 * i + k] = static_cast<float>(first + i);
          reinterpret_cast<int64_t*>(rows[1])[i] = -(first + i);
        }
      },
      ArrayPartOptions{{{}, pad_of(int64_t{-1})}, bad_samples});
}

std::unique_ptr<Feed> arrays_of(std::shared_ptr<const Part> part, int64_t cache) {
  const auto source = std::make_shared<MemoryPictures>(10);
  FeedOptions options;
  options.batch = 4;
  options.threads = 2;
  options.cache_bytes = cache;
  return sample_feed(source, {{"", std::move(part), false}}, sample_rows(*source, {}), options);
}

}  // namespace

TEST_CASE("rows of several arrays are the same read in runs and one by one, and padded as is said") {
  const auto part = two_arrays(false, true);
  CHECK(part->stored_bytes() == 24);
  CHECK(part->only_copies());
  std::vector<FeedCopy> first;
  for (const int64_t cache : {0, 1 << 20}) {
    const auto feed = arrays_of(part, cache);
    const auto batches = take_batches(*feed, 3);
    if (first.empty()) first = batches;
    CHECK(batches == first);
  }
  CHECK(values_of<float>(first[1].arrays[0])[3] == 5);
  CHECK(values_of<int64_t>(first[1].arrays[1]) == std::vector<int64_t>{-4, -5, -6, -7});
  CHECK(values_of<int64_t>(first[2].arrays[1]) == std::vector<int64_t>{-8, -9, -1, -1});
  CHECK(values_of<float>(first[2].arrays[0])[6] == 0);
}

TEST_CASE("an error of an array's reader stops, or makes its sample bad, as whoever makes it says") {
  for (const int64_t cache : {0, 1 << 20}) {
    CHECK_THROWS_WITH_AS(
        [&] {
          const auto feed = arrays_of(two_arrays(false), cache);
          take_batches(*feed, 2);
        }(),
        "memory[4]: has no number", InputError);
    const auto feed = arrays_of(two_arrays(true), cache);
    const auto batches = take_batches(*feed, 3);
    CHECK(values_of<int64_t>(batches[1].arrays[1]) == std::vector<int64_t>{-5, -5, -6, -7});
    REQUIRE(feed->bad_samples().size() == 1);
    CHECK(feed->bad_samples()[0].why == "has no number");
  }
}

TEST_CASE("an array part of rows without one size is refused") {
  const auto none = [](const Dataset&, int64_t, int64_t, std::span<std::byte* const>) {};
  const Dim batch = Dim::named("batch");
  CHECK_THROWS_AS(ArrayPart({{"a", {f32, {batch, Dim::named("length")}}}}, none), InternalError);
  CHECK_THROWS_AS(ArrayPart({{"a", {f32, {batch, Dim::named("width")}}}}, none), InternalError);
  CHECK_THROWS_AS(ArrayPart({{"a", {f32, {batch}}}}, none, {{pad_of(int64_t{-1})}, false}), InternalError);
}
