// What a loader does ahead of its model: how much, with how many threads.
#include <atomic>
#include <doctest/doctest.h>
#include <memory>

#include <millrace/error.h>

#include "data/codecs/pictures/stored_picture.h"
#include "data/feed/loader.h"
#include "data/feed/loader_options.h"
#include "support/pictures.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

/// Raw pictures in memory, without classes; counts how often they are read.
class MemorySet final : public Dataset {
 public:
  explicit MemorySet(int64_t count) : Dataset("memory"), count_(count) {
    columns_ = {{"picture", ColumnKind::picture}};
  }
  int64_t count() const override { return count_; }
  std::string name(int64_t index) const override { return "memory[" + std::to_string(index) + "]"; }
  Value read(int64_t index, size_t) const override {
    ++reads;
    return Pixels{6, 6, 3, Bytes(make_picture(6, 6, 3, static_cast<uint64_t>(index)).pixels)};
  }
  mutable std::atomic<int64_t> reads{0};

 private:
  int64_t count_;
};

struct Copy {
  std::vector<uint8_t> pictures;
  std::vector<int64_t> indices;
  bool operator==(const Copy&) const = default;
};

Copy copy(const Batch& batch) { return {batch.pictures, batch.indices}; }

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
  given.augment = {"pad-crop 2", "flip"};
  return given;
}

}  // namespace

TEST_CASE("a limit of memory holds fewer batches ahead, keeps pictures only where they fit, or is refused") {
  constexpr int64_t batch = 4, picture = 6 * 6 * 3, each = batch * (picture + 32);
  const auto limited = [&](int64_t memory, const std::shared_ptr<MemorySet>& source) {
    LoaderOptions given = options(batch, 3);
    given.memory = memory;
    given.cache_bytes = 1 << 20;
    return std::make_unique<Loader>(source, given);
  };
  LoaderOptions free = options(batch, 3);
  Loader unlimited(std::make_shared<MemorySet>(40), free);
  const std::vector<Copy> wanted = take(unlimited, 25);
  for (const int64_t memory : {2 * each, 3 * each + 5, 2 * each + 39 * picture, 2 * each + 40 * picture}) {
    CAPTURE(memory);
    const auto source = std::make_shared<MemorySet>(40);
    const auto loader = limited(memory, source);
    CHECK(loader->memory() <= memory);
    CHECK(loader->cached() == (memory >= 2 * each + 40 * picture));
    const int64_t slots = memory / each, read = source->reads;
    for (int i = 0; i < 25; ++i) {
      CHECK(copy(loader->next()) == wanted[static_cast<size_t>(i)]);
      // Whatever the threads have done by now: the batch at hand and those ahead, no more.
      if (!loader->cached()) CHECK(source->reads - read <= (i + slots) * batch);
    }
  }
  CHECK_THROWS_WITH_AS(limited(2 * each - 1, std::make_shared<MemorySet>(40)),
                       doctest::Contains("data.memory leaves"), InputError);
}

TEST_CASE("a slow model gets the same batches, with threads that go to sleep and wake up") {
  const auto source = std::make_shared<MemorySet>(50);
  Loader one(source, options(5, 1)), many(source, options(5, 4));
  for (int i = 0; i < 400; ++i) {
    const Copy wanted = copy(one.next());
    // All batches ahead are ready most of the time, and never when it was left alone after a seek.
    if (i % 100 < 60) CHECK(many.ready(10));
    if (i % 100 == 99) many.seek(many.cursor());
    CHECK(copy(many.next()) == wanted);
  }
}
