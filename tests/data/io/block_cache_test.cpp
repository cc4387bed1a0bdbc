#include "data/io/block_cache.h"

#include <atomic>
#include <doctest/doctest.h>
#include <filesystem>
#include <thread>

#include <millrace/error.h>

#include "base/file.h"
#include "base/format.h"
#include "base/parallel_for.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;
namespace fs = std::filesystem;

namespace {

/// An object whose byte i is i modulo 251, and which counts what is fetched.
class Counted final : public RemoteObject {
 public:
  Counted(uint64_t size, std::string version) : size_(size), version_(std::move(version)) {}
  uint64_t size() const override { return size_; }
  const std::string& version() const override { return version_; }
  const std::string& url() const override { return url_; }
  std::vector<uint8_t> fetch(uint64_t offset, uint64_t size) const override {
    if (broken) fail<RemoteError>("{}: out of order", url_);
    ++fetches;
    std::vector<uint8_t> bytes(size);
    for (uint64_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>((offset + i) % 251);
    return bytes;
  }
  mutable std::atomic<int> fetches{0};
  std::atomic<bool> broken{false};

 private:
  uint64_t size_;
  std::string version_, url_ = "test://object";
};

BlockCacheOptions options(const fs::path& folder) {
  BlockCacheOptions o;
  o.block_bytes = 1000;
  o.memory_bytes = 3000;
  o.disk_bytes = 100'000;
  o.folder = folder;
  return o;
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
    BlockCache cache(options(folder / "cache"));
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
    BlockCache cache(options(folder / "cache"));
    CHECK(right(cached_file(object, cache)->read(0, 10'500), 0));
    CHECK(right(cached_file(newer, cache)->read(0, 10'500), 0));
  }
  CHECK(object->fetches == 11);
  CHECK(newer->fetches == 11);
}

TEST_CASE("memory and disk of the cache stay within their limits") {
  const TempFolder folder;
  const auto object = std::make_shared<Counted>(100'000, "1");
  BlockCacheOptions small = options(folder / "cache");
  small.disk_bytes = 5'500;
  BlockCache cache(small);
  for (uint64_t i = 0; i < 100; ++i) {
    CHECK(right(cache.block(object, i), i * 1000));
    CHECK(bytes_below(folder / "cache") <= 5'500);
  }
  CHECK(cache.counts().disk_bytes == bytes_below(folder / "cache"));
  CHECK(blocks_below(folder / "cache").size() == 5);
  // The newest are there.
  CHECK(object->fetches == 100);
  (void)cache.block(object, 96);
  CHECK(object->fetches == 100);
  (void)cache.block(object, 3);
  CHECK(object->fetches == 101);
  // A limit that is smaller than what an earlier process left.
  small.disk_bytes = 2'100;
  BlockCache smaller(small);
  CHECK(bytes_below(folder / "cache") <= 2'100);
}

TEST_CASE("the disk's limit holds, too, while many threads write") {
  const TempFolder folder;
  constexpr uint64_t block = 50'000, blocks = 400;
  const auto object = std::make_shared<Counted>(block * blocks, "1");
  BlockCacheOptions small = options(folder / "cache");
  small.block_bytes = block;
  small.memory_bytes = 2 * block;
  small.disk_bytes = 5 * block;
  BlockCache cache(small);
  std::atomic<uint64_t> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (uint64_t i = next++; i < blocks; i = next++) (void)cache.block(object, i);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(bytes_below(folder / "cache") <= small.disk_bytes);
  CHECK(cache.counts().disk_bytes == bytes_below(folder / "cache"));
}

TEST_CASE("damaged, cut and vanished blocks are fetched anew") {
  const TempFolder folder;
  const auto object = std::make_shared<Counted>(4'000, "1");
  { (void)cached_file(object, *std::make_unique<BlockCache>(options(folder / "cache")))->read(0, 4'000); }
  const auto paths = blocks_below(folder / "cache");
  REQUIRE(paths.size() == 4);
  auto damaged = read_file(paths[0]);
  damaged[500] ^= 1;
  write_file(paths[0], damaged);
  fs::resize_file(paths[1], 10);
  fs::remove(paths[2]);
  const int before = object->fetches;
  BlockCache cache(options(folder / "cache"));
  CHECK(right(cached_file(object, cache)->read(0, 4'000), 0));
  CHECK(object->fetches == before + 3);
}

TEST_CASE("a cache that cannot be written warns once and goes on") {
  const TempFolder folder;
  write_file(folder / "cache", std::string_view("a file where the folder should be"));
  const auto object = std::make_shared<Counted>(4'000, "1");
  BlockCache cache(options(folder / "cache"));
  CHECK(right(cached_file(object, cache)->read(0, 4'000), 0));
  CHECK(cache.warning().find("no longer kept on disk") != std::string::npos);
}

TEST_CASE("what cannot be fetched is an error for everyone who waits, and works again afterwards") {
  const TempFolder folder;
  const auto object = std::make_shared<Counted>(4'000, "1");
  BlockCache cache(options(folder / "cache"));
  object->broken = true;
  std::atomic<int> errors{0};
  parallel_for(8, 8, [&](int64_t i) {
    try {
      (void)cache.block(object, static_cast<uint64_t>(i % 2));
    } catch (const IoError&) {
      ++errors;
    }
  });
  CHECK(errors == 8);
  object->broken = false;
  CHECK(right(cache.block(object, 1), 1000));
}

TEST_CASE("many threads that read at random get the right bytes, and each block comes once") {
  const TempFolder folder;
  const auto object = std::make_shared<Counted>(50'000, "1");
  auto cache = std::make_unique<BlockCache>(options(folder / "cache"));
  const auto file = cached_file(object, *cache);
  std::atomic<int> wrong{0};
  parallel_for(400, 8, [&](int64_t i) {
    const uint64_t offset = static_cast<uint64_t>(i * 7919 % 48'000),
                   size = static_cast<uint64_t>(i * 31 % 2'000);
    if (!right(file->read(offset, size), offset)) ++wrong;
  });
  CHECK(wrong == 0);
  cache.reset();  // waits for what is fetched ahead
  CHECK(object->fetches == 50);
}
