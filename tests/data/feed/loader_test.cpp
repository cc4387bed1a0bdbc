#include "data/feed/loader.h"

#include <algorithm>
#include <atomic>
#include <doctest/doctest.h>
#include <set>
#include <thread>

#include <millrace/error.h>

#include "base/parallel_for.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/feed/loader_options.h"
#include "support/labelled.h"
#include "support/pictures.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

/// Raw pictures in memory, with classes and a score; some may be bad.
class MemorySet final : public Dataset {
 public:
  MemorySet(int64_t count, int side = 6, std::set<int64_t> bad = {})
      : Dataset("memory"), count_(count), side_(side), bad_(std::move(bad)) {
    columns_ = {
        {"picture", ColumnKind::picture}, {"label", ColumnKind::integer}, {"score", ColumnKind::real}};
  }
  int64_t count() const override { return count_; }
  std::string name(int64_t index) const override { return "memory[" + std::to_string(index) + "]"; }
  std::optional<size_t> class_column() const override { return 1; }
  std::vector<std::string> class_names(size_t) const override { return {"a", "b", "c"}; }
  Value read(int64_t index, size_t column) const override {
    if (column == 1) return index % 3;
    if (column == 2) return static_cast<double>(index % 5);
    ++reads;
    if (fail_at == index) throw std::runtime_error("the disk is on fire");
    Bytes bytes(make_picture(side_, side_, 3, static_cast<uint64_t>(index)).pixels);
    if (bad_.contains(index)) return bytes;  // no raw size: bytes that are no JPEG
    return Pixels{side_, side_, 3, bytes};
  }
  mutable std::atomic<int64_t> reads{0};
  std::atomic<int64_t> fail_at{-1};

 private:
  int64_t count_;
  int side_;
  std::set<int64_t> bad_;
};

struct Copy {
  std::vector<uint8_t> pictures;
  std::vector<int64_t> labels, indices;
  int64_t valid;
  Cursor start;
  bool operator==(const Copy&) const = default;
};

Copy copy(const Batch& batch) {
  return {batch.pictures, batch.labels, batch.indices, batch.valid, batch.start};
}

std::vector<Copy> take(Loader& loader, int batches) {
  std::vector<Copy> out;
  for (int i = 0; i < batches; ++i) out.push_back(copy(loader.next()));
  return out;
}

LoaderOptions options(int64_t batch, int threads) {
  LoaderOptions given;
  given.batch = batch;
  given.threads = threads;
  given.order = "shuffle";
  given.augment = {"pad-crop 2", "flip", "rotate 20"};
  return given;
}

}  // namespace

TEST_CASE("every epoch holds every sample once, in another order, the last batch padded") {
  const auto source = std::make_shared<MemorySet>(50);
  LoaderOptions given = options(16, 2);
  given.augment = {};
  Loader loader(source, given);
  CHECK(loader.cached());
  CHECK(loader.batches_per_epoch() == 4);
  CHECK(loader.extent().bytes() == 108);
  std::vector<std::vector<int64_t>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> seen;
    for (int i = 0; i < 4; ++i) {
      const Batch& batch = loader.next();
      CHECK(batch.start == Cursor{1, epoch, 16 * i});
      CHECK(batch.valid == (i < 3 ? 16 : 2));
      for (int64_t k = 0; k < 16; ++k) {
        if (k >= batch.valid) {
          CHECK(batch.indices[k] == -1);
          CHECK(batch.labels[k] == 0);
          CHECK(std::all_of(&batch.pictures[k * 108], &batch.pictures[k * 108] + 108,
                            [](uint8_t v) { return v == 0; }));
          continue;
        }
        seen.push_back(batch.indices[k]);
        CHECK(batch.labels[k] == batch.indices[k] % 3);
        std::vector<uint8_t> planes(108);
        to_planes(make_picture(6, 6, 3, static_cast<uint64_t>(batch.indices[k])), planes.data());
        CHECK(std::equal(planes.begin(), planes.end(), &batch.pictures[k * 108]));
      }
    }
    epochs.push_back(seen);
    std::sort(seen.begin(), seen.end());
    for (int64_t i = 0; i < 50; ++i) CHECK(seen[i] == i);
  }
  CHECK(epochs[0] != epochs[1]);
  CHECK(epochs[1] != epochs[2]);
}

TEST_CASE("any number of threads, cached or not, gives the same batches bit for bit") {
  const auto source = std::make_shared<MemorySet>(70, 6, std::set<int64_t>{3, 4, 69});
  std::vector<Copy> first;
  for (const int threads : {1, 2, 5})
    for (const int64_t cache : {int64_t{0}, int64_t{1} << 30}) {
      LoaderOptions given = options(16, threads);
      given.cache_bytes = cache;
      Loader loader(source, given);
      CHECK(loader.cached() == (cache > 0));
      const auto batches = take(loader, 14);
      if (first.empty()) first = batches;
      CHECK(batches == first);
    }
}

TEST_CASE("a cursor put back, into the same loader or a new one, gives the same next batches") {
  const auto source = std::make_shared<MemorySet>(50);
  for (const bool drop_last : {false, true}) {
    LoaderOptions given = options(16, 3);
    given.drop_last = drop_last;
    Loader loader(source, given);
    take(loader, 2);
    const Cursor before = loader.cursor();
    const auto expected = take(loader, 9);
    CHECK(expected[0].start == before);
    loader.seek(before);
    CHECK(loader.cursor() == before);
    CHECK(take(loader, 9) == expected);
    given.threads = 1;
    given.seed = 77;  // the cursor's seed counts
    Loader other(source, given);
    other.seek(before);
    CHECK(take(other, 9) == expected);
  }
}

TEST_CASE("drop_last leaves out what fills no batch, also from a cursor made with another batch size") {
  Loader loader(std::make_shared<MemorySet>(50), [] {
    LoaderOptions given = options(16, 2);
    given.drop_last = true;
    return given;
  }());
  CHECK(loader.samples_per_epoch() == 48);
  loader.seek({1, 0, 20});
  const auto batches = take(loader, 3);
  CHECK(batches[0].start == Cursor{1, 0, 20});
  CHECK(batches[1].start == Cursor{1, 1, 0});
  for (const Copy& batch : batches) CHECK(batch.valid == 16);
  loader.seek({1, 0, 48});
  CHECK(loader.next().start == Cursor{1, 1, 0});
  CHECK_THROWS_WITH_AS(loader.seek({1, 0, 49}), doctest::Contains("was the data changed"), InputError);
}

TEST_CASE("bad samples are replaced by the next good one, counted and named") {
  const auto source = std::make_shared<MemorySet>(20, 6, std::set<int64_t>{0, 7, 8, 19});
  for (const int64_t cache : {int64_t{0}, int64_t{1} << 30}) {
    LoaderOptions given;
    given.batch = 20;
    given.threads = 2;
    given.cache_bytes = cache;
    Loader loader(source, given);
    const Batch& batch = loader.next();
    for (int64_t i = 0; i < 20; ++i) {
      const int64_t want = i == 0 || i == 19 ? 1 : i == 7 || i == 8 ? 9 : i;
      CHECK(batch.indices[i] == want);
      CHECK(batch.labels[i] == want % 3);
    }
    const auto bad = loader.bad_samples();
    REQUIRE(bad.size() == 4);
    CHECK(bad[1].index == 7);
    CHECK(bad[1].name == "memory[7]");
    CHECK(bad[1].why == "not a JPEG file");
    CHECK(loader.tried().samples == 20);
    CHECK(loader.tried().bad == 4);
  }
}

TEST_CASE("the share of bad samples is of those asked for, not of a run of damage that one leads into") {
  std::set<int64_t> run;
  for (int64_t i = 10; i < 30; ++i) run.insert(i);
  LoaderOptions given;
  given.batch = 11;
  given.threads = 1;
  given.cache_bytes = 0;
  const auto source = std::make_shared<MemorySet>(100, 6, run);
  Loader loader(source, given);
  loader.next();
  const LoaderWork work = loader.work();
  CHECK(work.pictures >= 11);
  CHECK(work.cpu_seconds > 0);
  CHECK(work.cpu_seconds <= work.seconds + 0.01);
  // A thread works ahead by a few batches, so that all there is is a bound.
  for (int i = 0; i < 9; ++i) loader.next();
  const Tried tried = loader.tried();
  CHECK(tried.samples == 100);
  CHECK(tried.bad == 20);
  CHECK(tried.known_bad == 20);

  // Sample 10, asked for alone, leads through the whole run.
  given.batch = 1;
  given.drop_last = true;
  Loader one(source, given);
  one.seek({1, 0, 10});
  CHECK(one.next().indices[0] == 30);
  CHECK(one.tried().known_bad == 20);
  CHECK(one.tried().bad < 20);
}

TEST_CASE("truncated pictures in a folder are quarantined; nothing but bad pictures is an error") {
  TempFolder folder;
  Members members = make_members({"cat", "dog"}, 4);
  members[5].second.resize(members[5].second.size() / 2);
  write_members(folder / "set", members);
  LoaderOptions given;
  given.batch = 8;
  Loader loader(open_labelled(folder / "set"), given);
  CHECK(loader.next().valid == 8);
  REQUIRE(loader.bad_samples().size() == 1);
  CHECK(loader.bad_samples()[0].name == (folder / "set/dog/1001.jpg").string());

  for (auto& [name, content] : members) content = "no picture";
  write_members(folder / "bad", members);
  CHECK_THROWS_WITH_AS(Loader(open_labelled(folder / "bad"), given),
                       doctest::Contains("none of its 8 pictures"), InputError);
}

TEST_CASE("pictures of different sizes are an error that names both, and resize brings them to one") {
  TempFolder folder;
  Members members = make_members({"cat", "dog"}, 2);
  members[2].second = make_jpeg(10, 12, 3, 5);
  write_members(folder / "set", members);
  for (const int64_t cache : {int64_t{0}, int64_t{1} << 30}) {
    LoaderOptions given;
    given.batch = 4;
    given.cache_bytes = cache;
    CHECK_THROWS_WITH_AS(
        [&] {
          Loader loader(open_labelled(folder / "set"), given);
          loader.next();
        }(),
        doctest::Contains("dog/1000.jpg is 12x10 colour, but"), InputError);
    given.resize = 9;
    Loader loader(open_labelled(folder / "set"), given);
    CHECK(loader.extent().height == 9);
    CHECK(loader.extent().width == 9);
    CHECK(loader.next().valid == 4);
  }
}

TEST_CASE("grey pictures among colour ones become colour when asked, and the error says how") {
  TempFolder folder;
  Members members = make_members({"cat", "dog"}, 2);
  members[0].second = make_jpeg(8, 8, 1, 5);
  write_members(folder / "set", members);
  LoaderOptions given;
  given.batch = 4;
  CHECK_THROWS_WITH_AS(Loader(open_labelled(folder / "set"), given),
                       doctest::Contains("set data.channels = 1"), InputError);
  for (const int channels : {1, 3}) {
    given.channels = channels;
    Loader loader(open_labelled(folder / "set"), given);
    CHECK(loader.extent().channels == channels);
    CHECK(loader.next().valid == 4);
  }
}

TEST_CASE("a failure in the background is thrown at the batch that it concerns") {
  const auto source = std::make_shared<MemorySet>(40);
  LoaderOptions given;
  given.batch = 8;
  given.threads = 3;
  given.cache_bytes = 0;
  Loader loader(source, given);
  source->fail_at = 36;
  loader.seek({1, 0, 0});
  for (int i = 0; i < 4; ++i) CHECK(loader.next().start.position == 8 * i);
  CHECK_THROWS_WITH(loader.next(), "the disk is on fire");
  CHECK_THROWS_WITH(loader.next(), "the disk is on fire");
  source->fail_at = -1;
  loader.seek(loader.cursor());
  CHECK(loader.next().start.position == 32);
}

TEST_CASE("a loader decodes once when it caches, reports progress, and can be left at any time") {
  const auto source = std::make_shared<MemorySet>(1000);
  LoaderOptions given = options(64, 4);
  int64_t last = 0;
  given.progress = [&](int64_t done, int64_t total) {
    CHECK(total == 1000);
    last = std::max(last, done);
  };
  {
    Loader loader(source, given);
    CHECK(last == 1000);
    take(loader, 40);
  }
  CHECK(source->reads == 1001);  // and the first one once more, for its size
  for (int i = 0; i < 20; ++i) Loader(source, options(8, 3));
}

TEST_CASE("options that make no sense are refused") {
  const auto source = std::make_shared<MemorySet>(10);
  const auto with = [&](auto change) {
    LoaderOptions given = options(4, 1);
    change(given);
    Loader(source, given);
  };
  CHECK_THROWS_AS(with([](LoaderOptions& o) { o.batch = 0; }), InputError);
  CHECK_THROWS_AS(with([](LoaderOptions& o) { o.batch = 11, o.drop_last = true; }), InputError);
  CHECK_THROWS_AS(with([](LoaderOptions& o) { o.augment = {"pad-crop 6"}; }), InputError);
  CHECK_THROWS_AS(with([](LoaderOptions& o) { o.augment = {"flop"}; }), InputError);
  CHECK_THROWS_AS(with([](LoaderOptions& o) { o.resize = -1; }), InputError);
  CHECK_THROWS_AS(with([](LoaderOptions& o) { o.channels = 2; }), InputError);
}

TEST_CASE("parallel_for runs every number once and rethrows the lowest failure") {
  for (const int threads : {1, 3}) {
    std::vector<std::atomic<int>> hits(500);
    parallel_for(500, threads, [&](int64_t i) { ++hits[i]; });
    for (const auto& hit : hits) CHECK(hit == 1);
    CHECK_THROWS_WITH(parallel_for(500, threads,
                                   [](int64_t i) {
                                     if (i >= 123) throw std::runtime_error(std::to_string(i));
                                   }),
                      "123");
  }
}

TEST_CASE(
    "with random-resized-crop first pictures may have any size, and damage replaces one sample at a time") {
  TempFolder folder;
  Members members;
  for (int i = 0; i < 12; ++i)
    members.emplace_back((i % 2 ? "cat/" : "dog/") + std::to_string(i) + ".jpg",
                         make_jpeg(40 + 7 * i, 90 - 3 * i, 3, i));
  members[3].second.resize(members[3].second.size() / 2);
  write_members(folder / "set", members);
  std::vector<Copy> first;
  for (const int threads : {1, 3}) {
    LoaderOptions given = options(5, threads);
    given.augment = {"random-resized-crop 16", "flip"};
    Loader loader(open_labelled(folder / "set"), given);
    CHECK(!loader.cached());
    CHECK(loader.extent().bytes() == 3 * 16 * 16);
    const auto batches = take(loader, 12);
    if (first.empty()) first = batches;
    CHECK(batches == first);
    CHECK(loader.bad_samples().size() == 1);
    // A loader that begins later has met no damage yet, and gives the same.
    Loader later(open_labelled(folder / "set"), given);
    later.seek(first[7].start);
    CHECK(take(later, 5) == std::vector<Copy>(first.begin() + 7, first.end()));
  }
  LoaderOptions given = options(5, 2);
  given.augment = {"flip"};
  given.resize = 24;
  given.crop = 20;
  Loader loader(open_labelled(folder / "set"), given);
  CHECK(loader.extent().bytes() == 3 * 20 * 20);
  given.crop = 60;
  given.resize = 0;
  CHECK_THROWS_WITH_AS(Loader(open_labelled(folder / "set"), given).next(),
                       doctest::Contains("data.crop = 60"), InputError);
}

TEST_CASE("batches come in the order that is asked for, whatever the threads, and go on from any place") {
  const auto source = std::make_shared<MemorySet>(50);
  for (const char* order : {"sequential", "block-shuffle 5 2", "class-balanced", "stratified",
                            "quota a=7 c=4", "weighted score", "importance score"}) {
    LoaderOptions given = options(8, 3);
    given.order = order;
    Loader loader(source, given);
    std::vector<std::vector<int64_t>> indices;
    std::vector<Cursor> cursors;
    for (int i = 0; i < 20; ++i) {
      cursors.push_back(loader.cursor());
      const Batch& batch = loader.next();
      indices.push_back(batch.indices);
      CHECK(batch.start == cursors.back());
      CHECK(batch.weights.size() == (std::string(order) == "importance score" ? 8 : 0));
    }
    given.threads = 1;
    Loader again(source, given);
    again.seek(cursors[7]);
    for (size_t i = 7; i < 20; ++i) CHECK_MESSAGE(again.next().indices == indices[i], order);
  }
  LoaderOptions quota = options(8, 1);
  quota.order = "quota a=7 c=4";
  CHECK(Loader(source, quota).samples_per_epoch() == 11);
}

TEST_CASE("weights of samples come with the batch: of a column, of importance sampling, or both multiplied") {
  const auto source = std::make_shared<MemorySet>(50);
  LoaderOptions given = options(50, 2);
  given.sample_weight = "score";
  {
    Loader loader(source, given);
    CHECK(loader.weighted());
    const Batch& batch = loader.next();
    for (size_t i = 0; i < 50; ++i) CHECK(batch.weights[i] == static_cast<float>(batch.indices[i] % 5));
  }
  given.order = "importance score";
  Loader loader(source, given);
  // Drawn with probability score / 100, which a weight of 1 / (50 * score / 100) undoes; times the score: 2.
  const Batch& batch = loader.next();
  for (const float weight : batch.weights) CHECK(weight == doctest::Approx(2));
  given.sample_weight = "scores";
  CHECK_THROWS_AS(Loader(source, given), InputError);
  given.sample_weight = "";
  given.order = "weighted nothing";
  CHECK_THROWS_AS(Loader(source, given), InputError);
}

namespace {

/// What all ranks take from a cursor to the end of its epoch, and where they are then.
struct Taken {
  std::vector<int64_t> samples;
  Cursor at;
};
Taken take_together(const std::shared_ptr<const Dataset>& source, LoaderOptions given, int ranks,
                    const Cursor& from, int most_batches = 1 << 20) {
  Taken taken;
  given.ranks = ranks;
  std::set<int64_t> batches;
  for (given.rank = 0; given.rank < ranks; ++given.rank) {
    Loader loader(source, given);
    loader.seek(from);
    int64_t count = 0, least = INT64_MAX, full = 0;
    for (; count < most_batches && loader.cursor().epoch == from.epoch; ++count) {
      const Batch& batch = loader.next();
      least = std::min(least, batch.valid);
      full += batch.valid == given.batch;
      for (int64_t i = 0; i < given.batch; ++i) {
        if (i < batch.valid) taken.samples.push_back(batch.indices[i]);
        CHECK((batch.indices[i] >= 0) == (i < batch.valid));
      }
    }
    CHECK(full >= count - 1);  // only the last may be short
    batches.insert(count);
    taken.at = loader.cursor();
  }
  CHECK(batches.size() == 1);
  return taken;
}

}  // namespace

TEST_CASE("ranks take together exactly an epoch, each as many batches, and the same random changes") {
  for (const int64_t count : {int64_t{16}, int64_t{50}, int64_t{97}})
    for (const int ranks : {1, 2, 3, 8}) {
      CAPTURE(count);
      CAPTURE(ranks);
      const auto source = std::make_shared<MemorySet>(count);
      std::vector<int64_t> seen = take_together(source, options(4, 1), ranks, {1, 2, 0}).samples;
      std::sort(seen.begin(), seen.end());
      REQUIRE(static_cast<int64_t>(seen.size()) == count);
      for (int64_t i = 0; i < count; ++i) CHECK(seen[static_cast<size_t>(i)] == i);
    }
  // One rank's batch of 8 is the batches of 4 of two.
  const auto source = std::make_shared<MemorySet>(50);
  Loader alone(source, options(8, 2));
  const Copy both = copy(alone.next());
  for (const int rank : {0, 1}) {
    LoaderOptions given = options(4, 2);
    given.rank = rank;
    given.ranks = 2;
    Loader loader(source, given);
    const Copy mine = copy(loader.next());
    for (size_t i = 0; i < 4; ++i) {
      CHECK(mine.indices[i] == both.indices[2 * i + static_cast<size_t>(rank)]);
      CHECK(std::equal(&mine.pictures[108 * i], &mine.pictures[108 * i] + 108,
                       &both.pictures[108 * (2 * i + static_cast<size_t>(rank))]));
    }
  }
}

TEST_CASE("ranks that become more or fewer take exactly the rest of the epoch") {
  const auto source = std::make_shared<MemorySet>(97);
  for (const int before : {1, 2, 3, 8})
    for (const int after : {1, 2, 3, 8}) {
      CAPTURE(before);
      CAPTURE(after);
      const Taken first = take_together(source, options(4, 1), before, {1, 1, 0}, 2);
      const Taken rest = take_together(source, options(4, 1), after, first.at);
      std::vector<int64_t> seen = first.samples;
      seen.insert(seen.end(), rest.samples.begin(), rest.samples.end());
      std::sort(seen.begin(), seen.end());
      REQUIRE(seen.size() == 97);
      for (int64_t i = 0; i < 97; ++i) CHECK(seen[static_cast<size_t>(i)] == i);
    }
  LoaderOptions wrong = options(4, 1);
  wrong.rank = 2;
  wrong.ranks = 2;
  CHECK_THROWS_AS(Loader(source, wrong), InputError);
}

TEST_CASE("a mixture resumes anywhere with its shares, and they can change on the way") {
  const auto source = std::make_shared<MemorySet>(60);
  LoaderOptions given = options(5, 2);
  given.parts = {20, 40};
  given.shares = {0.5, 0.5};
  const auto first_share = [](const std::vector<Copy>& batches) {
    int64_t count = 0;
    for (const Copy& batch : batches)
      for (const int64_t index : batch.indices) count += index < 20;
    return static_cast<double>(count) / static_cast<double>(5 * batches.size());
  };
  Loader whole(source, given);
  std::vector<Cursor> cursors;
  std::vector<Copy> batches;
  for (int i = 0; i < 60; ++i) {
    if (i == 30) whole.set_shares(std::vector<double>{9, 1});
    cursors.push_back(whole.cursor());
    batches.push_back(copy(whole.next()));
  }
  CHECK(batches[20].start == cursors[20]);
  CHECK(batches[20].start.epoch == 1);  // 12 batches of 5 are an epoch of 60
  CHECK(first_share({batches.begin(), batches.begin() + 30}) == doctest::Approx(0.5).epsilon(0.2));
  CHECK(first_share({batches.begin() + 30, batches.end()}) == doctest::Approx(0.9).epsilon(0.1));
  for (const int at : {1, 29, 30, 31, 59}) {
    CAPTURE(at);
    LoaderOptions again = given;
    if (at >= 30) again.shares = {9, 1};
    Loader loader(source, again);
    loader.seek(cursors[static_cast<size_t>(at)]);
    CHECK(copy(loader.next()) == batches[static_cast<size_t>(at)]);
  }
  // Without the state of a cursor: as drawn by the shares from the beginning on.
  Loader skipping(source, given);
  skipping.skip(17);
  CHECK(copy(skipping.next()) == batches[17]);
  skipping.seek({1, 1, 25});
  CHECK(copy(skipping.next()) == batches[17]);
  CHECK_THROWS_AS(whole.set_shares(std::vector<double>{0, 0}), InputError);
  (void)copy(whole.next());  // goes on with the shares before
  Cursor wrong = cursors[3];
  wrong.state.push_back(1);
  CHECK_THROWS_AS(whole.seek(wrong), InputError);
}

TEST_CASE("ranks of a mixture take together what one takes alone") {
  const auto source = std::make_shared<MemorySet>(61);
  LoaderOptions given = options(4, 1);
  given.parts = {21, 40};
  given.shares = {0.3, 0.7};
  std::vector<int64_t> alone = take_together(source, given, 1, {1, 0, 0}).samples;
  std::sort(alone.begin(), alone.end());
  for (const int ranks : {2, 3}) {
    std::vector<int64_t> together = take_together(source, given, ranks, {1, 0, 0}).samples;
    std::sort(together.begin(), together.end());
    CHECK(together == alone);
  }
}
