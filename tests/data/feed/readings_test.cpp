#include "data/feed/readings.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

#include "support/feed_samples.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

FeedOptions readings_feed(int64_t batch, int64_t cache) {
  FeedOptions options;
  options.batch = batch;
  options.threads = 2;
  options.cache_bytes = cache;
  return options;
}

}  // namespace

TEST_CASE("bad samples of a feed are replaced by the next good one, counted and named") {
  const auto source = std::make_shared<MemoryPictures>(20, std::set<int64_t>{0, 7, 8, 19});
  for (const int64_t cache : {int64_t{0}, int64_t{1} << 30}) {
    const auto feed = picture_feed_of(source, readings_feed(20, cache), {"sequential"}, {});
    const FeedBatch& batch = feed->next();
    const auto labels = values_of<int64_t>(batch.arrays[1]);
    for (int64_t i = 0; i < 20; ++i) {
      const int64_t want = i == 0 || i == 19 ? 1 : i == 7 || i == 8 ? 9 : i;
      CHECK(batch.samples[static_cast<size_t>(i)] == want);
      CHECK(labels[static_cast<size_t>(i)] == want % 3);
    }
    const auto bad = feed->bad_samples();
    REQUIRE(bad.size() == 4);
    CHECK(bad[1].index == 7);
    CHECK(bad[1].name == "memory[7]");
    CHECK(bad[1].why.starts_with("it is no picture"));
    CHECK(feed->tried().samples == 20);
    CHECK(feed->tried().bad == 4);
  }
}

TEST_CASE("the share of bad samples of a feed is of those asked for, not of a run that one leads into") {
  std::set<int64_t> run;
  for (int64_t i = 10; i < 30; ++i) run.insert(i);
  const auto source = std::make_shared<MemoryPictures>(100, run);
  FeedOptions given = readings_feed(11, 0);
  given.threads = 1;
  const auto feed = picture_feed_of(source, given, {"sequential"}, {});
  for (int i = 0; i < 10; ++i) (void)feed->next();
  CHECK(feed->tried().samples == 100);
  CHECK(feed->tried().bad == 20);
  CHECK(feed->tried().known_bad == 20);

  // Sample 10, asked for alone, leads through the whole run.
  given.batch = 1;
  given.drop_last = true;
  const auto one = picture_feed_of(source, given, {"sequential"}, {});
  one->seek({1, 0, 10});
  CHECK(one->next().samples[0] == 30);
  CHECK(one->tried().known_bad == 20);
  CHECK(one->tried().bad < 20);
}

TEST_CASE("samples that are kept are read once, with progress, and a feed can be left at any time") {
  const auto source = std::make_shared<MemoryPictures>(1000);
  FeedOptions given = readings_feed(64, int64_t{1} << 30);
  given.threads = 4;
  int64_t last = 0;
  given.progress = [&](int64_t done, int64_t total) {
    CHECK(total == 1000);
    last = std::max(last, done);
  };
  {
    const auto feed = picture_feed_of(source, given);
    CHECK(last == 1000);
    take_batches(*feed, 40);
  }
  CHECK(source->reads == 1001);  // and the first one once more, for its size
  given.batch = 8;
  for (int i = 0; i < 20; ++i) picture_feed_of(source, given);
}

namespace {

/// A byte of each sample: its number. Samples below `good_from` are bad; with `random`, those also whose
/// position is odd.
class BytePart final : public Part {
 public:
  BytePart(int64_t good_from, bool random, bool has_runs)
      : good_from_(good_from), random_(random), runs_(has_runs) {}
  std::span<const Field> fields() const override { return fields_; }
  size_t stored_bytes() const override { return 1; }
  bool keeps() const override { return !random_; }
  std::string read(const Dataset&, int64_t index, const SampleKey* random, Scratch*,
                   std::byte* stored) const override {
    ++reads;
    if (index < good_from_) return "too early";
    if (random_ && random) {
      CHECK(random->index == index);
      if (random->position % 2 == 1 && index % 2 == 1) return "odd";
    }
    *stored = static_cast<std::byte>(index);
    return {};
  }
  bool read_run(const Dataset&, int64_t first, int64_t count, std::byte* stored,
                size_t stride) const override {
    if (!runs_) return false;
    ++runs;
    for (int64_t i = 0; i < count; ++i)
      stored[static_cast<size_t>(i) * stride] = static_cast<std::byte>(first + i);
    return true;
  }
  void put(const std::byte* stored, const Row&, Scratch*, std::span<std::byte* const> arrays) const override {
    *arrays[0] = *stored;
  }
  mutable std::atomic<int64_t> reads{0}, runs{0};

 private:
  std::vector<Field> fields_ = {{"byte", {u8, {Dim::named("batch")}}}};
  int64_t good_from_;
  bool random_, runs_;
};

}  // namespace

TEST_CASE("readings: runs are read where they are offered, but not across samples that are bad") {
  const auto source = std::make_shared<MemoryPictures>(100);
  const auto first = std::make_shared<BytePart>(3, false, false);
  const auto second = std::make_shared<BytePart>(0, false, true);
  Readings readings(source, {first, second}, {1, 1000, "samples", nullptr});
  CHECK(readings.kept());
  CHECK(readings.memory() == 200);
  CHECK(readings.sample_bytes() == 2);
  CHECK(first->reads == 100);
  CHECK(second->runs == 1);    // the second chunk of 36
  CHECK(second->reads == 61);  // the first one of 64 without its bad samples
  Readings::Reader reader = readings.reader();
  for (int64_t i = 0; i < 100; ++i) {
    int64_t index = i;
    const auto stored = readings.get(index, {}, reader);
    CHECK(index == std::max<int64_t>(i, 3));
    for (const std::byte* byte : stored) CHECK(static_cast<int64_t>(*byte) == index);
  }
  CHECK(readings.tried().samples == 100);
  CHECK(readings.bad_samples().size() == 3);
  CHECK(readings.bad_samples()[2].why == "too early");
}

TEST_CASE("readings: what is random is read anew, and bad for the row alone that it was read for") {
  const auto source = std::make_shared<MemoryPictures>(10);
  const auto part = std::make_shared<BytePart>(0, true, false);
  Readings readings(source, {part}, {1, 1 << 20, "samples", nullptr});
  CHECK(!readings.kept());
  CHECK(readings.needed() == 0);
  Readings::Reader reader = readings.reader();
  int64_t index = 3;
  (void)readings.get(index, {1, 0, 1, 0}, reader);
  CHECK(index == 4);
  index = 3;
  (void)readings.get(index, {1, 0, 2, 0}, reader);
  CHECK(index == 3);
  CHECK(readings.tried().bad == 1);
  // Met good before, it counts as bad all the same, and once.
  Readings other(source, {part}, {1, 1 << 20, "samples", nullptr});
  Readings::Reader again = other.reader();
  for (const int64_t row : {2, 1, 1}) {
    index = 3;
    (void)other.get(index, {1, 0, row, 0}, again);
    CHECK(index == (row == 2 ? 3 : 4));
  }
  CHECK(other.tried().bad == 1);
}

TEST_CASE("readings: nothing but bad samples is an error at once, kept or not") {
  const auto source = std::make_shared<MemoryPictures>(10);
  for (const int64_t most : {0, 1000})
    for (const bool random : {false, true})
      CHECK_THROWS_WITH_AS(
          Readings(source, {std::make_shared<BytePart>(10, random, false)}, {1, most, "samples", nullptr}),
          "memory: none of its 10 samples can be read (the first: too early)", InputError);
  CHECK_THROWS_AS(Readings(nullptr, {std::make_shared<BytePart>(0, false, false)}, {}), InternalError);
}
