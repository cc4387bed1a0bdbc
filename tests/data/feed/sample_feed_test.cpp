#include "data/feed/sample_feed.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <numeric>

#include <millrace/error.h>

#include "support/feed_samples.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

FeedOptions feed_of(int64_t batch, int threads) {
  FeedOptions options;
  options.batch = batch;
  options.threads = threads;
  return options;
}

/// What all ranks take from a cursor to the end of its epoch, and where they are then.
struct TakenTogether {
  std::vector<int64_t> samples;
  Cursor at;
};
TakenTogether together(const std::shared_ptr<const Dataset>& source, FeedOptions given,
                       const OrderedSamples& order, int ranks, const Cursor& from, int most = 1 << 20) {
  TakenTogether taken;
  given.ranks = ranks;
  std::set<int64_t> batches;
  for (given.rank = 0; given.rank < ranks; ++given.rank) {
    const auto feed = picture_feed_of(source, given, order, {});
    feed->seek(from);
    int64_t count = 0, full = 0;
    for (; count < most && feed->cursor().epoch == from.epoch; ++count) {
      const FeedBatch& batch = feed->next();
      full += batch.valid == given.batch;
      CHECK(static_cast<int64_t>(batch.samples.size()) == batch.valid);
      taken.samples.insert(taken.samples.end(), batch.samples.begin(), batch.samples.end());
    }
    CHECK(full >= count - 1);  // only the last may be short
    batches.insert(count);
    taken.at = feed->cursor();
  }
  CHECK(batches.size() == 1);
  return taken;
}

std::vector<int64_t> sorted(std::vector<int64_t> list) {
  std::sort(list.begin(), list.end());
  return list;
}
std::vector<int64_t> numbers_up_to(int64_t count) {
  std::vector<int64_t> list(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(), int64_t{0});
  return list;
}

}  // namespace

TEST_CASE("an epoch of a sample feed holds every sample once, in another order, the last batch padded") {
  const auto source = std::make_shared<MemoryPictures>(50);
  const auto feed = picture_feed_of(source, feed_of(16, 2), {"shuffle"}, {});
  CHECK(feed->cached());
  CHECK(feed->batches_per_epoch() == 4);
  CHECK(feed->count() == 50);
  CHECK(feed->fields()[0].type == Type{u8, {Dim::named("batch"), 3, 6, 6}});
  CHECK(feed->field("labels") == 1);
  CHECK(feed->cache_needed() == 50 * (108 + 8));
  CHECK(feed->sample_bytes() == 116);
  std::vector<std::vector<int64_t>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> seen;
    for (int b = 0; b < 4; ++b) {
      const FeedBatch& batch = feed->next();
      CHECK(batch.start == Cursor{1, epoch, 16 * b});
      CHECK(batch.valid == (b < 3 ? 16 : 2));
      for (const auto& array : batch.arrays) CHECK(reinterpret_cast<uintptr_t>(array.data()) % 64 == 0);
      const auto pictures = values_of<uint8_t>(batch.arrays[0]);
      const auto labels = values_of<int64_t>(batch.arrays[1]);
      CHECK(pictures.size() == 16 * 108);
      for (size_t k = 0; k < 16; ++k) {
        std::vector<uint8_t> planes(108);
        if (static_cast<int64_t>(k) >= batch.valid) {
          CHECK(labels[k] == -1);
        } else {
          CHECK(labels[k] == batch.samples[k] % 3);
          to_planes(make_picture(6, 6, 3, static_cast<uint64_t>(batch.samples[k])), planes.data());
        }
        CHECK(std::equal(planes.begin(), planes.end(), &pictures[k * 108]));
      }
      seen.insert(seen.end(), batch.samples.begin(), batch.samples.end());
    }
    epochs.push_back(seen);
    CHECK(sorted(seen) == numbers_up_to(50));
  }
  CHECK(epochs[0] != epochs[1]);
  CHECK(epochs[1] != epochs[2]);
}

TEST_CASE("a sample feed gives the same batches for any number of threads, kept or not, bit for bit") {
  const auto source = std::make_shared<MemoryPictures>(70, std::set<int64_t>{3, 4, 69});
  std::vector<FeedCopy> first;
  for (const int threads : {1, 2, 5})
    for (const int64_t cache : {int64_t{0}, int64_t{1} << 30}) {
      FeedOptions given = feed_of(16, threads);
      given.cache_bytes = cache;
      const auto feed =
          picture_feed_of(source, given, {"shuffle"}, {"pad-crop 2", "flip", "rotate 20"}, {"mixup 0.4"});
      CHECK(feed->cached() == (cache > 0));
      const auto batches = take_batches(*feed, 14);
      if (first.empty()) first = batches;
      CHECK(batches == first);
    }
}

TEST_CASE("a cursor put back, into the same sample feed or a new one, gives the same next batches") {
  const auto source = std::make_shared<MemoryPictures>(50);
  for (const bool drop_last : {false, true}) {
    FeedOptions given = feed_of(16, 3);
    given.drop_last = drop_last;
    const auto feed = picture_feed_of(source, given);
    take_batches(*feed, 2);
    const Cursor before = feed->cursor();
    const auto expected = take_batches(*feed, 9);
    CHECK(expected[0].start == before);
    feed->seek(before);
    CHECK(feed->cursor() == before);
    CHECK(take_batches(*feed, 9) == expected);
    given.threads = 1;
    given.seed = 77;  // the cursor's seed counts
    const auto other = picture_feed_of(source, given);
    other->seek(before);
    CHECK(take_batches(*other, 9) == expected);
    other->seek({1, 0, 0});
    other->skip(4);
    CHECK(copy_of(other->next()) == expected[2]);
  }
}

TEST_CASE("drop_last of a sample feed leaves out what fills no batch, from any cursor") {
  FeedOptions given = feed_of(16, 2);
  given.drop_last = true;
  const auto feed = picture_feed_of(std::make_shared<MemoryPictures>(50), given);
  CHECK(feed->samples_per_epoch() == 48);
  feed->seek({1, 0, 20});
  const auto batches = take_batches(*feed, 3);
  CHECK(batches[0].start == Cursor{1, 0, 20});
  CHECK(batches[1].start == Cursor{1, 1, 0});
  for (const FeedCopy& batch : batches) CHECK(batch.valid == 16);
  feed->seek({1, 0, 48});
  CHECK(feed->next().start == Cursor{1, 1, 0});
  CHECK_THROWS_WITH_AS(feed->seek({1, 0, 49}), doctest::Contains("was the data changed"), InputError);
}

TEST_CASE("a failure in the background of a sample feed is thrown at its batch, again and again") {
  const auto source = std::make_shared<MemoryPictures>(40);
  FeedOptions given = feed_of(8, 3);
  given.cache_bytes = 0;
  const auto feed = picture_feed_of(source, given, {"sequential"});
  source->fail_at = 36;
  feed->seek({1, 0, 0});
  for (int i = 0; i < 4; ++i) CHECK(feed->next().start.position == 8 * i);
  CHECK_THROWS_WITH(feed->next(), "the disk is on fire");
  CHECK_THROWS_WITH(feed->next(), "the disk is on fire");
  source->fail_at = -1;
  feed->seek(feed->cursor());
  CHECK(feed->next().start.position == 32);
}

TEST_CASE("options of a sample feed that make no sense are refused") {
  const auto source = std::make_shared<MemoryPictures>(10);
  const auto with = [&](auto change) {
    FeedOptions given = feed_of(4, 1);
    change(given);
    picture_feed_of(source, given);
  };
  CHECK_THROWS_AS(with([](FeedOptions& o) { o.batch = 0; }), InputError);
  CHECK_THROWS_WITH_AS(with([](FeedOptions& o) { o.batch = 11, o.drop_last = true; }),
                       doctest::Contains("do not fill a batch"), InputError);
  CHECK_THROWS_AS(with([](FeedOptions& o) { o.rank = 2, o.ranks = 2; }), InputError);
  CHECK_THROWS_WITH_AS(with([](FeedOptions& o) { o.weights.assign(10, -1); }),
                       doctest::Contains("memory[0]: its weight is -1"), InputError);
  CHECK_THROWS_AS(with([](FeedOptions& o) { o.weights.assign(9, 1); }), InputError);
}

TEST_CASE("a sample feed comes in the order that is asked for, whatever the threads, from any place on") {
  const auto source = std::make_shared<MemoryPictures>(50);
  for (const char* order : {"sequential", "block-shuffle 5 2", "class-balanced", "stratified",
                            "quota a=7 c=4", "weighted score", "importance score"}) {
    OrderedSamples ordered{order, {}, {"a", "b", "c"}, {}, {}};
    for (int64_t i = 0; i < 50; ++i) ordered.labels.push_back(i % 3);
    FeedOptions given = feed_of(8, 3);
    given.weighted = parse_order(order).kind->weighs;
    CHECK(given.weighted == (std::string(order) == "importance score"));
    const auto feed = picture_feed_of(source, given, ordered);
    CHECK(feed->has_field("weights") == given.weighted);
    std::vector<FeedCopy> batches;
    std::vector<Cursor> cursors;
    for (int i = 0; i < 20; ++i) {
      cursors.push_back(feed->cursor());
      batches.push_back(copy_of(feed->next()));
      CHECK(batches.back().start == cursors.back());
    }
    given.threads = 1;
    const auto again = picture_feed_of(source, given, ordered);
    again->seek(cursors[7]);
    for (size_t i = 7; i < 20; ++i) CHECK_MESSAGE(copy_of(again->next()) == batches[i], order);
    if (std::string(order).starts_with("quota")) CHECK(feed->samples_per_epoch() == 11);
  }
}

TEST_CASE("weights come with a sample feed's batch: of samples, of importance sampling, or both multiplied") {
  const auto source = std::make_shared<MemoryPictures>(50);
  FeedOptions given = feed_of(60, 2);
  for (int64_t i = 0; i < 50; ++i) given.weights.push_back(static_cast<double>(i % 5));
  {
    const auto feed = picture_feed_of(source, given);
    const FeedBatch& batch = feed->next();
    const auto weights = values_of<float>(batch.arrays[feed->field("weights")]);
    REQUIRE(weights.size() == 60);
    for (size_t i = 0; i < 50; ++i) CHECK(weights[i] == static_cast<float>(batch.samples[i] % 5));
    for (size_t i = 50; i < 60; ++i) CHECK(weights[i] == 0);
  }
  given.batch = 50;
  const auto feed = picture_feed_of(source, given, {"importance score"});
  // Drawn with probability score / 100, which a weight of 1 / (50 * score / 100) undoes; times the score: 2.
  for (const float weight : values_of<float>(feed->next().arrays[feed->field("weights")]))
    CHECK(weight == doctest::Approx(2));
  CHECK_THROWS_AS(picture_feed_of(source, given, {"weighted nothing"}), InputError);
}

TEST_CASE("ranks of a sample feed take together exactly an epoch, with the same random changes") {
  for (const int64_t count : {int64_t{16}, int64_t{50}, int64_t{97}})
    for (const int ranks : {1, 2, 3, 8}) {
      CAPTURE(count);
      CAPTURE(ranks);
      const auto source = std::make_shared<MemoryPictures>(count);
      CHECK(sorted(together(source, feed_of(4, 1), {"shuffle"}, ranks, {1, 2, 0}).samples) ==
            numbers_up_to(count));
    }
  // One rank's batch of 8 is the batches of 4 of two.
  const auto source = std::make_shared<MemoryPictures>(50);
  const auto alone = picture_feed_of(source, feed_of(8, 2));
  const FeedCopy both = copy_of(alone->next());
  for (const int rank : {0, 1}) {
    FeedOptions given = feed_of(4, 2);
    given.rank = rank;
    given.ranks = 2;
    const auto feed = picture_feed_of(source, given);
    const FeedCopy mine = copy_of(feed->next());
    for (size_t i = 0; i < 4; ++i) {
      const size_t place = 2 * i + static_cast<size_t>(rank);
      CHECK(mine.samples[i] == both.samples[place]);
      CHECK(
          std::equal(&mine.arrays[0][108 * i], &mine.arrays[0][108 * i] + 108, &both.arrays[0][108 * place]));
    }
  }
}

TEST_CASE("ranks of a sample feed that become more or fewer take exactly the rest of the epoch") {
  const auto source = std::make_shared<MemoryPictures>(97);
  for (const int before : {1, 2, 3, 8})
    for (const int after : {1, 2, 3, 8}) {
      CAPTURE(before);
      CAPTURE(after);
      const TakenTogether first = together(source, feed_of(4, 1), {"shuffle"}, before, {1, 1, 0}, 2);
      std::vector<int64_t> seen = together(source, feed_of(4, 1), {"shuffle"}, after, first.at).samples;
      seen.insert(seen.end(), first.samples.begin(), first.samples.end());
      CHECK(sorted(seen) == numbers_up_to(97));
    }
}

TEST_CASE("a mixture of a sample feed goes on anywhere with its shares, and they can change on the way") {
  const auto source = std::make_shared<MemoryPictures>(60);
  const OrderedSamples halves{"shuffle", {}, {}, {20, 40}, {0.5, 0.5}};
  const auto first_share = [](std::span<const FeedCopy> batches) {
    int64_t count = 0;
    for (const FeedCopy& batch : batches)
      for (const int64_t index : batch.samples) count += index < 20;
    return static_cast<double>(count) / static_cast<double>(5 * batches.size());
  };
  const auto whole = picture_feed_of(source, feed_of(5, 2), halves);
  std::vector<Cursor> cursors;
  std::vector<FeedCopy> batches;
  for (int i = 0; i < 60; ++i) {
    if (i == 30) whole->set_shares(std::vector<double>{9, 1});
    cursors.push_back(whole->cursor());
    batches.push_back(copy_of(whole->next()));
  }
  CHECK(batches[20].start == cursors[20]);
  CHECK(batches[20].start.epoch == 1);  // 12 batches of 5 are an epoch of 60
  CHECK(first_share(std::span(batches).first(30)) == doctest::Approx(0.5).epsilon(0.2));
  CHECK(first_share(std::span(batches).last(30)) == doctest::Approx(0.9).epsilon(0.1));
  for (const int at : {1, 29, 30, 31, 59}) {
    CAPTURE(at);
    OrderedSamples again = halves;
    if (at >= 30) again.shares = {9, 1};
    const auto feed = picture_feed_of(source, feed_of(5, 1), again);
    feed->seek(cursors[static_cast<size_t>(at)]);
    CHECK(copy_of(feed->next()) == batches[static_cast<size_t>(at)]);
  }
  // Without the state of a cursor: as drawn by the shares from the beginning on.
  const auto skipping = picture_feed_of(source, feed_of(5, 2), halves);
  skipping->skip(17);
  CHECK(copy_of(skipping->next()) == batches[17]);
  skipping->seek({1, 1, 25});
  CHECK(copy_of(skipping->next()) == batches[17]);
  CHECK_THROWS_AS(whole->set_shares(std::vector<double>{0, 0}), InputError);
  (void)whole->next();  // goes on with the shares before
  Cursor wrong = cursors[3];
  wrong.state.push_back(1);
  CHECK_THROWS_AS(whole->seek(wrong), InputError);
  const auto one = picture_feed_of(source, feed_of(5, 1));
  CHECK_THROWS_WITH_AS(one->set_shares(std::vector<double>{1}), doctest::Contains("memory: "), InputError);
}

TEST_CASE("a mixture without state in its cursor counts what drop_last takes of an epoch") {
  const auto source = std::make_shared<MemoryPictures>(61);
  const OrderedSamples order{"shuffle", {}, {}, {21, 40}, {0.3, 0.7}};
  FeedOptions given = feed_of(4, 1);
  given.drop_last = true;
  const auto feed = picture_feed_of(source, given, order);
  const auto batches = take_batches(*feed, 20);
  REQUIRE(batches[17].start.epoch == 1);
  feed->seek({1, 1, batches[17].start.position});
  CHECK(copy_of(feed->next()) == batches[17]);
}

TEST_CASE("ranks of a mixture take together what one takes alone, through a sample feed") {
  const auto source = std::make_shared<MemoryPictures>(61);
  const OrderedSamples order{"shuffle", {}, {}, {21, 40}, {0.3, 0.7}};
  const auto alone = sorted(together(source, feed_of(4, 1), order, 1, {1, 0, 0}).samples);
  for (const int ranks : {2, 3})
    CHECK(sorted(together(source, feed_of(4, 1), order, ranks, {1, 0, 0}).samples) == alone);
}

TEST_CASE("where samples are mixed, a batch has what is mixed in, and in which share") {
  const auto source = std::make_shared<MemoryPictures>(10);
  const auto mixed = picture_feed_of(source, feed_of(6, 2), {"sequential"}, {}, {"mixup 1"});
  const auto plain = picture_feed_of(source, feed_of(6, 2), {"sequential"}, {});
  std::vector<std::string> names;
  for (const Field& field : mixed->fields()) names.push_back(field.name);
  CHECK(names == std::vector<std::string>{"pictures", "labels", "mixed.labels", "mix"});
  for (int b = 0; b < 2; ++b) {
    const FeedCopy with = copy_of(mixed->next()), without = copy_of(plain->next());
    const auto labels = values_of<int64_t>(with.arrays[1]), others = values_of<int64_t>(with.arrays[2]);
    const auto shares = values_of<float>(with.arrays[3]);
    const auto valid = static_cast<size_t>(with.valid);
    REQUIRE(valid == (b == 0 ? 6 : 4));
    for (size_t i = 0; i < 6; ++i) {
      CHECK(shares[i] == shares[0]);
      if (i >= valid) {
        CHECK(others[i] == -1);
        continue;
      }
      const size_t before = i > 0 ? i - 1 : valid - 1;
      CHECK(others[i] == labels[before]);
      const auto own = static_cast<float>(without.arrays[0][i * 108]),
                 other = static_cast<float>(without.arrays[0][before * 108]);
      CHECK(static_cast<float>(with.arrays[0][i * 108]) ==
            doctest::Approx(shares[0] * own + (1 - shares[0]) * other).epsilon(0.02));
    }
    CHECK(shares[0] > 0);
    CHECK(shares[0] < 1);
  }
}

TEST_CASE("a limit of memory holds fewer batches ahead, keeps samples only where they fit, or is refused") {
  constexpr int64_t sample = 6 * 6 * 3 + 8;
  const auto limited = [&](int64_t memory, const std::shared_ptr<MemoryPictures>& source) {
    FeedOptions given = feed_of(4, 3);
    given.memory = memory;
    given.cache_bytes = 1 << 20;
    return picture_feed_of(source, given);
  };
  FeedOptions once = feed_of(4, 3);
  once.cache_bytes = 0;
  const int64_t each = picture_feed_of(std::make_shared<MemoryPictures>(40), once)->memory() / 5;
  CHECK(each >= 4 * sample);
  CHECK(each <= 4 * (sample + 100));
  const auto wanted = take_batches(*picture_feed_of(std::make_shared<MemoryPictures>(40), feed_of(4, 3)), 25);
  for (const int64_t memory : {2 * each, 3 * each + 5, 2 * each + 39 * sample, 2 * each + 40 * sample}) {
    CAPTURE(memory);
    const auto source = std::make_shared<MemoryPictures>(40);
    const auto feed = limited(memory, source);
    CHECK(feed->memory() <= memory);
    CHECK(feed->cached() == (memory >= 2 * each + 40 * sample));
    const int64_t slots = memory / each, read = source->reads;
    for (int i = 0; i < 25; ++i) {
      CHECK(copy_of(feed->next()) == wanted[static_cast<size_t>(i)]);
      // Whatever the threads have done by now: the batch at hand and those ahead, no more.
      if (!feed->cached()) CHECK(source->reads - read <= (i + slots) * 4);
    }
  }
  CHECK_THROWS_WITH_AS(limited(2 * each - 1, std::make_shared<MemoryPictures>(40)),
                       doctest::Contains("data.memory leaves"), InputError);
}

TEST_CASE("a slow model gets the same batches of a sample feed, with threads that sleep and wake up") {
  const auto source = std::make_shared<MemoryPictures>(50);
  const auto one = picture_feed_of(source, feed_of(5, 1)), many = picture_feed_of(source, feed_of(5, 4));
  for (int i = 0; i < 400; ++i) {
    const FeedCopy wanted = copy_of(one->next());
    // All batches ahead are ready most of the time, and never when it was left alone after a seek.
    if (i % 100 < 60) CHECK(many->ready(10));
    if (i % 100 == 99) many->seek(many->cursor());
    CHECK(copy_of(many->next()) == wanted);
  }
  const LoaderWork work = many->work();
  CHECK(work.samples >= 2000);
  CHECK(work.cpu_seconds > 0);
  CHECK(work.seconds > 0);
}

TEST_CASE("a picture, a table row and two targets come together, each under its prefix") {
  const auto source = std::make_shared<MemoryPictures>(20, std::set<int64_t>{5});
  const auto scores = std::make_shared<ArrayPart>(
      std::vector<Field>{{"numbers", {f32, {Dim::named("batch"), 2}}}},
      [](const Dataset& from, int64_t first, int64_t count, std::span<std::byte* const> rows) {
        auto* const to = reinterpret_cast<float*>(rows[0]);
        for (int64_t i = 0; i < count; ++i) {
          to[2 * i] = static_cast<float>(std::get<double>(from.read(first + i, from.column("score"))));
          to[2 * i + 1] = static_cast<float>(first + i);
        }
      });
  for (const int64_t cache : {int64_t{0}, int64_t{1} << 20}) {
    FeedOptions given = feed_of(8, 2);
    given.cache_bytes = cache;
    std::vector<NamedPart> parts = {{"picture.", picture_part(*source, {.mix = {"mixup 1"}}), false},
                                    {"row.", scores, false},
                                    {"class.", label_part(), true},
                                    {"score.", scores, true}};
    const auto feed = sample_feed(source, std::move(parts), sample_rows(*source, {"shuffle"}), given);
    std::vector<std::string> names;
    for (const Field& field : feed->fields()) names.push_back(field.name);
    CHECK(names == std::vector<std::string>{"picture.pictures", "row.numbers", "class.labels",
                                            "score.numbers", "mixed.class.labels", "mixed.score.numbers",
                                            "mix"});
    for (int b = 0; b < 6; ++b) {
      const FeedBatch& batch = feed->next();
      const auto rows = values_of<float>(batch.arrays[1]);
      const auto labels = values_of<int64_t>(batch.arrays[2]);
      const auto mixed = values_of<float>(batch.arrays[5]);
      for (size_t i = 0; i < static_cast<size_t>(batch.valid); ++i) {
        const int64_t index = batch.samples[i];
        CHECK(index != 5);  // it is bad as a whole: its row and class are left out with its picture
        CHECK(rows[2 * i] == static_cast<float>(index % 5));
        CHECK(rows[2 * i + 1] == static_cast<float>(index));
        CHECK(labels[i] == index % 3);
        const size_t before = i > 0 ? i - 1 : static_cast<size_t>(batch.valid) - 1;
        CHECK(mixed[2 * i + 1] == static_cast<float>(batch.samples[before]));
      }
    }
    REQUIRE(feed->bad_samples().size() == 1);
    CHECK(feed->bad_samples()[0].name == "memory[5]");
  }
  std::vector<NamedPart> twice = {{"", label_part(), true}, {"", label_part(), true}};
  CHECK_THROWS_AS(sample_feed(source, twice, sample_rows(*source, {}), feed_of(4, 1)), InternalError);
}

namespace {

/// Rows of 1 to 4 extracts that lie in no sample; the length of a batch depends on where it begins.
class ExtractRows final : public RowPlan {
 public:
  int64_t count() const override { return 10; }
  void take(const Cursor& at, std::span<RowPick> rows) const override {
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i].extracts = {{at.position + static_cast<int64_t>(i), 1, -1}};
  }
  int64_t length(const Cursor& at) const override { return at.position < 4 ? 2 : 3; }
  std::vector<int64_t> lengths() const override { return {2, 3}; }
  bool whole_batches() const override { return true; }
  std::vector<std::string> describe() const override { return {"ten rows"}; }
};

/// Each place of a row holds the begin of its extract; finish() adds 100.
class ExtractPart final : public Part {
 public:
  std::span<const Field> fields() const override { return fields_; }
  size_t stored_bytes() const override { return 0; }
  std::string read(const Dataset&, int64_t, const SampleKey*, Scratch*, std::byte*) const override {
    return "nothing is read";
  }
  void put(const std::byte*, const Row& row, Scratch*, std::span<std::byte* const> arrays) const override {
    std::fill_n(reinterpret_cast<int64_t*>(arrays[0]), row.length, row.extracts[0].begin);
  }
  void finish(int64_t batch, int64_t length, std::span<std::byte* const> arrays) const override {
    for (int64_t i = 0; i < batch * length; ++i) reinterpret_cast<int64_t*>(arrays[0])[i] += 100;
  }
  bool only_copies() const override { return copies; }
  uint32_t digest() const override { return 7; }
  bool copies = true;

 private:
  std::vector<Field> fields_ = {{"ids", {i64, {Dim::named("batch"), Dim::named("length")}}}};
};

}  // namespace

TEST_CASE("rows of extracts need no data set, have the length of their batch, and threads change nothing") {
  for (const bool copies : {true, false}) {
    const auto part = std::make_shared<ExtractPart>();
    part->copies = copies;
    FeedOptions given = feed_of(4, 2);
    given.path = "corpus";
    given.describe = [](const RowPlan&, const Cursor& at, int64_t count) {
      std::vector<std::string> lines;
      for (int64_t i = 0; i < count; ++i) lines.push_back("row " + std::to_string(at.position + i));
      return lines;
    };
    const auto feed = sample_feed(nullptr, {{"", part, false}}, std::make_unique<ExtractRows>(), given);
    CHECK(feed->count() == 10);
    CHECK(feed->digest() != 0);  // of what the part holds
    CHECK(feed->cached());
    CHECK(feed->path() == "corpus");
    CHECK(feed->notes() == std::vector<std::string>{"corpus: ten rows"});
    CHECK(feed->lengths() == std::vector<int64_t>{2, 3});
    for (int b = 0; b < 6; ++b) {
      const FeedBatch& batch = feed->next();
      const int64_t length = b % 3 == 0 ? 2 : 3, first = 4 * (b % 3), valid = b % 3 == 2 ? 2 : 4;
      CHECK(batch.length == length);
      CHECK(batch.valid == valid);
      CHECK(batch.samples.empty());
      const auto ids = values_of<int64_t>(batch.arrays[0]);
      REQUIRE(static_cast<int64_t>(ids.size()) == 4 * length);
      for (int64_t i = 0; i < 4 * length; ++i)
        CHECK(ids[static_cast<size_t>(i)] == 100 + (i / length < valid ? first + i / length : 0));
      CHECK(static_cast<int64_t>(feed->rows().size()) == valid);
      CHECK(feed->rows()[1] == "row " + std::to_string(first + 1));
    }
    CHECK_THROWS_WITH_AS(feed->seek({1, 0, 3}), doctest::Contains("no batch begins"), InputError);
    feed->seek({1, 0, 10});
    CHECK(feed->cursor() == Cursor{1, 1, 0});
  }
}

TEST_CASE("samples that are kept and only copied come without threads, with a digest of their content") {
  const auto source = std::make_shared<MemoryPictures>(10), more = std::make_shared<MemoryPictures>(11);
  const auto labels = [&](std::shared_ptr<const Dataset> set, int64_t batch, int64_t cache = 1 << 20) {
    FeedOptions given = feed_of(batch, 2);
    given.cache_bytes = cache;
    auto rows = sample_rows(*set, {"shuffle"});
    return sample_feed(std::move(set), {{"", label_part(), true}}, std::move(rows), given);
  };
  const auto feed = labels(source, 4), anew = labels(source, 4, 0);
  CHECK(feed->memory() < 10 * 8 + 2 * 4 * 100);  // one batch, no ring of them
  CHECK(take_batches(*feed, 9) == take_batches(*anew, 9));
  CHECK(feed->work().samples == 30);
  CHECK(feed->digest() != 0);
  CHECK(feed->digest() == labels(source, 2)->digest());
  CHECK(feed->digest() != labels(more, 4)->digest());
  CHECK(anew->digest() == 0);
}
