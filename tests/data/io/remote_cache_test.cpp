#include "data/io/remote_cache.h"

#include <atomic>
#include <chrono>
#include <doctest/doctest.h>
#include <filesystem>
#include <thread>

#include <millrace/error.h>

#include "base/file.h"
#include "base/format.h"
#include "base/parallel_for.h"
#include "data/io/byte_arena.h"
#include "data/io/merge_ranges.h"
#include "data/io/read_ahead.h"
#include "data/io/remote_file.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;
namespace fs = std::filesystem;

namespace {

/// An object whose byte i is i modulo 251, and which counts what is fetched.
class Counted final : public RemoteObject {
 public:
  Counted(uint64_t size, std::string version) : RemoteObject("test://object") {
    size_ = size;
    version_ = std::move(version);
  }
  void fetch(uint64_t offset, std::span<uint8_t> out) const override {
    if (broken) fail<RemoteError>("{}: out of order", url_);
    ++fetches;
    bytes += out.size();
    for (uint64_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>((offset + i) % 251);
  }
  mutable std::atomic<int> fetches{0};
  mutable std::atomic<uint64_t> bytes{0};
  std::atomic<bool> broken{false};
};

RemoteCacheOptions options(const fs::path& folder) {
  RemoteCacheOptions o;
  o.block_bytes = 1000;
  o.memory_bytes = 3000;
  o.disk_bytes = 100'000;
  o.folder = folder;
  return o;
}

std::shared_ptr<const RandomAccessFile> cached_file(std::shared_ptr<const RemoteObject> object,
                                                    RemoteCache& cache) {
  return std::make_shared<RemoteFile>(std::move(object), cache);
}

bool right(const Bytes& bytes, uint64_t offset) {
  for (uint64_t i = 0; i < bytes.size(); ++i)
    if (bytes.data()[i] != (offset + i) % 251) return false;
  return true;
}

uint64_t bytes_below(const fs::path& folder) {
  uint64_t sum = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) sum += entry.file_size();
  return sum;
}

std::vector<fs::path> blocks_below(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) paths.push_back(entry.path());
  return paths;
}

}  // namespace

TEST_CASE("a remote file gives its bytes from any place, and fetches no block twice") {
  const TempFolder folder;
  const auto object = std::make_shared<Counted>(10'500, "1");
  {
    RemoteCache cache(options(folder / "cache"));
    const auto file = cached_file(object, cache);
    CHECK(file->size() == 10'500);
    for (const auto& [offset, size] : std::vector<std::pair<uint64_t, uint64_t>>{
             {0, 1}, {999, 2}, {10'499, 1}, {0, 10'500}, {2000, 1000}, {1500, 3700}, {10'500, 0}}) {
      const Bytes bytes = file->read(offset, size);
      CHECK(bytes.size() == size);
      CHECK(right(bytes, offset));
    }
    CHECK_THROWS_AS((void)file->read(10'000, 501), InputError);
    CHECK_THROWS_AS((void)file->read(UINT64_MAX, 2), InputError);
  }
  CHECK(object->fetches == 11);  // a closed cache fetches nothing ahead any more
  // Another process later finds them on disk; another version of the object does not.
  const auto newer = std::make_shared<Counted>(10'500, "2");
  {
    RemoteCache cache(options(folder / "cache"));
    CHECK(right(cached_file(object, cache)->read(0, 10'500), 0));
    CHECK(right(cached_file(newer, cache)->read(0, 10'500), 0));
  }
  CHECK(object->fetches == 11);
  CHECK(newer->fetches == 11);
}

TEST_CASE("the disk keeps what it has of an open object, and gives it up for another") {
  const TempFolder folder;
  const auto object = std::make_shared<Counted>(100'000, "1");
  RemoteCacheOptions small = options(folder / "cache");
  small.disk_bytes = 5'500;
  RemoteCache cache(small);
  {
    const auto file = cached_file(object, cache);
    for (uint64_t epoch = 0; epoch < 2; ++epoch)
      for (uint64_t i = 0; i < 100; ++i) {
        CHECK(right(file->read(i * 37 % 100 * 1000, 1000), i * 37 % 100 * 1000));
        CHECK(bytes_below(folder / "cache") <= 5'500);
      }
    CHECK(cache.counts().disk_bytes == bytes_below(folder / "cache"));
    CHECK(blocks_below(folder / "cache").size() == 5);
  }
  // Least recently used blocks would all have made room before they were read again.
  CHECK(object->bytes == 195'000);
  const auto other = std::make_shared<Counted>(100'000, "2");
  const auto file = cached_file(other, cache);
  for (uint64_t i = 0; i < 20; ++i) CHECK(right(file->read(i * 3 % 5 * 1000, 1000), i * 3 % 5 * 1000));
  CHECK(other->bytes == 5'000);
  CHECK(bytes_below(folder / "cache") <= 5'500);
  // A limit that is smaller than what an earlier process left.
  small.disk_bytes = 2'100;
  RemoteCache smaller(small);
  CHECK(bytes_below(folder / "cache") <= 2'100);
}

TEST_CASE("the disk's limit holds, too, while many threads write") {
  const TempFolder folder;
  constexpr uint64_t block = 50'000, blocks = 400;
  const auto object = std::make_shared<Counted>(block * blocks, "1");
  RemoteCacheOptions small = options(folder / "cache");
  small.block_bytes = block;
  small.memory_bytes = 2 * block;
  small.disk_bytes = 5 * (block + 100);
  RemoteCache cache(small);
  const auto file = cached_file(object, cache);
  std::atomic<uint64_t> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (uint64_t i = next++; i < blocks; i = next++) CHECK(right(file->read(i * block, block), i * block));
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(bytes_below(folder / "cache") <= small.disk_bytes);
  CHECK(cache.counts().disk_bytes == bytes_below(folder / "cache"));
}

TEST_CASE("requests are merged where parts are near each other, and holes stay few") {
  const auto text = [](const std::vector<WantedRange>& ranges) {
    std::string out;
    for (const WantedRange& each : ranges) out += fmt::format("{}:{}-{} ", each.object, each.begin, each.end);
    return out;
  };
  CHECK(text(merge_ranges({}, 100)).empty());
  // Far apart: as they are, in the order of reading.
  CHECK(text(merge_ranges({{1, 500, 510, 0}, {1, 100, 110, 1}, {2, 105, 110, 2}}, 100)) ==
        "1:500-510 1:100-110 2:105-110 ");
  // Near, touching, within each other, twice.
  CHECK(text(merge_ranges({{1, 30, 40, 0}, {1, 10, 20, 1}, {1, 22, 30, 2}, {1, 12, 15, 3}, {1, 30, 40, 4}},
                          100)) == "1:10-40 ");
  // No request beyond the most.
  CHECK(text(merge_ranges({{1, 0, 250, 0}, {1, 250, 260, 1}}, 100)) == "1:0-100 1:100-200 1:200-260 ");
  // However many there are, holes are a fifth at most.
  std::vector<WantedRange> many;
  uint64_t wanted = 0, at = 0;
  for (int64_t i = 0; i < 5000; ++i) {
    at += static_cast<uint64_t>(i * 7919 % 50);
    const auto size = static_cast<uint64_t>(1 + i * 31 % 90);
    many.push_back({1, at, at + size, i});
    wanted += size;
    at += size;
  }
  uint64_t fetched = 0;
  for (const WantedRange& each : merge_ranges(many, 1000)) {
    CHECK(each.end - each.begin <= 1000);
    fetched += each.end - each.begin;
  }
  CHECK(fetched >= wanted);
  CHECK(fetched <= wanted + wanted / 5);
}

TEST_CASE("an arena gives no byte twice, takes all back, and is never larger") {
  constexpr uint64_t whole = 9'984;  // of 64 bytes each
  ByteArena arena(10'000);
  CHECK(arena.take(whole + 1) == nullptr);
  std::vector<std::pair<uint8_t*, uint64_t>> taken;
  for (uint64_t i = 0; i < 20'000; ++i) {
    const uint64_t size = 1 + i * 7919 % 700;
    if (uint8_t* const part = arena.take(size)) {
      std::fill_n(part, size, static_cast<uint8_t>(i));
      for (const auto& [other, length] : taken) CHECK((part + size <= other || other + length <= part));
      taken.emplace_back(part, size);
    } else {
      REQUIRE(!taken.empty());
      const size_t which = i * 31 % taken.size();
      arena.give_back(taken[which].first, taken[which].second);
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(which));
    }
    CHECK(arena.used() <= whole);
  }
  for (const auto& [part, size] : taken) arena.give_back(part, size);
  CHECK(arena.used() == 0);
  CHECK(arena.take(whole) != nullptr);
}

TEST_CASE("what is planned is fetched once, the wanted bytes alone, and memory stays within its limit") {
  // 1000 samples of 100 bytes in random order: 4 times what memory holds, and no disk.
  const auto object = std::make_shared<Counted>(100'000, "1");
  RemoteCacheOptions small = options({});
  small.block_bytes = 4'000;
  small.memory_bytes = 25'000;
  RemoteCache cache(small);
  const auto file = cached_file(object, cache);
  ReadAhead ahead(cache);
  CHECK(ahead.window_bytes() == 25'000 / 4);
  constexpr uint64_t window = 60;
  const auto offset = [](uint64_t i) { return i * 7919 % 1000 * 100; };
  const auto tell = [&](uint64_t first) {
    const ReadAhead::Window told;
    for (uint64_t i = first; i < std::min<uint64_t>(first + window, 1000); ++i)
      file->will_read(offset(i), 100);
    ahead.begin(told);
  };
  tell(0);
  for (uint64_t i = 0; i < 1000; ++i) {
    if (i % window == 0 && i > window) ahead.end();
    if (i % window == 0) tell(i + window);
    for (int again = 0; again < 2; ++again) CHECK(right(file->read(offset(i), 100), offset(i)));
    CHECK(cache.counts().memory_bytes <= 25'000);
  }
  CHECK(object->bytes >= 100'000);
  CHECK(object->bytes <= 120'000);
}

TEST_CASE("what is planned in order takes few requests") {
  const auto object = std::make_shared<Counted>(100'000, "1");
  RemoteCacheOptions small = options({});
  small.block_bytes = 4'000;
  small.memory_bytes = 25'000;
  RemoteCache cache(small);
  const auto file = cached_file(object, cache);
  ReadAhead ahead(cache);
  constexpr uint64_t window = 60;
  for (uint64_t first = 0; first < 1000; first += window) {
    const ReadAhead::Window told;
    for (uint64_t i = first; i < std::min<uint64_t>(first + window, 1000); ++i) file->will_read(i * 100, 100);
    CHECK(told.cost().requests <= 2);
    ahead.begin(told);
    if (first > 0) ahead.end();
    for (uint64_t i = first; i < std::min<uint64_t>(first + window, 1000); ++i)
      CHECK(right(file->read(i * 100, 100), i * 100));
  }
  CHECK(object->bytes <= 101'000);
  CHECK(object->fetches <= 40);
}

TEST_CASE("plans of several who want more than memory holds are read all the same") {
  const auto object = std::make_shared<Counted>(400'000, "1");
  RemoteCacheOptions small = options({});
  small.block_bytes = 4'000;
  small.memory_bytes = 10'000;
  RemoteCache cache(small);
  const auto file = cached_file(object, cache);
  parallel_for(6, 6, [&](int64_t reader) {
    ReadAhead ahead(cache);
    for (uint64_t round = 0; round < 10; ++round) {
      const auto offset = [&](uint64_t i) {
        return (static_cast<uint64_t>(reader) * 1237 + round * 577 + i * 7919) % 390 * 1000;
      };
      {
        const ReadAhead::Window told;
        for (uint64_t i = 0; i < 20; ++i) file->will_read(offset(i), 700);
        ahead.begin(told);
      }
      for (uint64_t i = 0; i < 20; ++i) CHECK(right(file->read(offset(i), 700), offset(i)));
      if (round % 3 == 0) ahead.clear();
      CHECK(cache.counts().memory_bytes <= 10'000);
    }
  });
}

TEST_CASE("what fits into memory as a whole is fetched once, in blocks, without a disk") {
  const auto object = std::make_shared<Counted>(2'000, "1");
  RemoteCache cache(options({}));
  const auto file = cached_file(object, cache);
  for (uint64_t i = 0; i < 300; ++i) CHECK(right(file->read(i * 7919 % 1900, 50), i * 7919 % 1900));
  CHECK(object->fetches == 2);
}

TEST_CASE("damaged, cut and vanished blocks are fetched anew") {
  const TempFolder folder;
  const auto object = std::make_shared<Counted>(4'000, "1");
  { (void)cached_file(object, *std::make_unique<RemoteCache>(options(folder / "cache")))->read(0, 4'000); }
  const auto paths = blocks_below(folder / "cache");
  REQUIRE(paths.size() == 4);
  auto damaged = read_file(paths[0]);
  damaged[500] ^= 1;
  write_file(paths[0], damaged);
  fs::resize_file(paths[1], 10);
  fs::remove(paths[2]);
  const int before = object->fetches;
  RemoteCache cache(options(folder / "cache"));
  CHECK(right(cached_file(object, cache)->read(0, 4'000), 0));
  CHECK(object->fetches == before + 3);
}

TEST_CASE("a cache that cannot be written warns once and goes on") {
  const TempFolder folder;
  write_file(folder / "cache", std::string_view("a file where the folder should be"));
  const auto object = std::make_shared<Counted>(4'000, "1");
  RemoteCache cache(options(folder / "cache"));
  CHECK(right(cached_file(object, cache)->read(0, 4'000), 0));
  CHECK(cache.room() == 2'250);  // that of memory
}

TEST_CASE("what cannot be fetched is an error for everyone who waits, and works again afterwards") {
  const TempFolder folder;
  const auto object = std::make_shared<Counted>(4'000, "1");
  RemoteCache cache(options(folder / "cache"));
  const auto file = cached_file(object, cache);
  ReadAhead ahead(cache);
  object->broken = true;
  {
    const ReadAhead::Window told;
    file->will_read(0, 2'000);
    ahead.begin(told);
  }
  std::atomic<int> errors{0};
  parallel_for(8, 8, [&](int64_t i) {
    try {
      (void)file->read(static_cast<uint64_t>(i % 2) * 1000, 900);
    } catch (const IoError&) {
      ++errors;
    }
  });
  CHECK(errors == 8);
  // What was read past a block that is still to come says nothing of that block.
  for (int i = 0; i < 1000 && cache.counts().disk_bytes > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(cache.counts().disk_bytes == 0);
  object->broken = false;
  CHECK(right(file->read(1000, 1000), 1000));
}

TEST_CASE("many threads that read at random get the right bytes, and each block comes once") {
  const TempFolder folder;
  const auto object = std::make_shared<Counted>(50'000, "1");
  RemoteCacheOptions some = options(folder / "cache");
  some.memory_bytes = 40'000;
  RemoteCache cache(some);
  const auto file = cached_file(object, cache);
  std::atomic<int> wrong{0};
  parallel_for(400, 8, [&](int64_t i) {
    const uint64_t offset = static_cast<uint64_t>(i * 7919 % 48'000),
                   size = static_cast<uint64_t>(i * 31 % 2'000);
    if (!right(file->read(offset, size), offset)) ++wrong;
  });
  CHECK(wrong == 0);
  CHECK(object->fetches <= 50);
  CHECK(right(file->read(0, 50'000), 0));
  CHECK(object->fetches == 50);
}
