#include "data/io/block_cache.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <future>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <sys/stat.h>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/cache_folder.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/fnv.h"
#include "base/format.h"
#include "base/size_text.h"
#include "data/io/http_client.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

constexpr size_t most_queued = 64;

/// Blocks on disk, the one used least lately first. Not thread-safe.
class DiskBlocks {
 public:
  DiskBlocks(fs::path folder, uint64_t limit) : folder_(std::move(folder)), limit_(limit) {
    if (limit_ == 0) folder_.clear();
    if (!folder_.empty()) scan();
  }

  bool on() const { return !folder_.empty(); }
  uint64_t bytes() const { return bytes_; }
  const std::string& warning() const { return warning_; }
  fs::path path(uint64_t object, uint64_t number) const {
    return folder_ / fmt::format("{:016x}", object) / std::to_string(number);
  }

  /// Notes a use: as the newest block, of `size` bytes; `written`: false while its file is not there yet.
  void use(const fs::path& path, uint64_t size, bool written = true) {
    forget(path);
    places_[path.string()] = blocks_.insert(blocks_.end(), {path, size, written});
    bytes_ += size;
  }
  void written(const fs::path& path) {
    const auto found = places_.find(path.string());
    if (found != places_.end()) found->second->written = true;
  }
  void forget(const fs::path& path) {
    const auto found = places_.find(path.string());
    if (found == places_.end()) return;
    bytes_ -= found->second->size;
    blocks_.erase(found->second);
    places_.erase(found);
  }
  /// Removes old blocks until `size` more bytes fit; false when they do not, beside those that are being
  /// written.
  bool make_room(uint64_t size) {
    if (size > limit_) return false;
    for (auto at = blocks_.begin(); bytes_ + size > limit_ && at != blocks_.end();) {
      const Block oldest = *at++;
      if (!oldest.written) continue;
      std::error_code ignored;
      fs::remove(oldest.path, ignored);
      forget(oldest.path);
    }
    return bytes_ + size <= limit_;
  }
  void give_up(const std::string& why) {
    warning_ = fmt::format("{}: remote data is no longer kept on disk ({})", folder_.string(), why);
    folder_.clear();
  }

 private:
  void scan() {
    std::vector<std::tuple<fs::file_time_type, fs::path, uint64_t>> found;
    std::error_code error;
    for (fs::recursive_directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
      std::error_code gone;
      if (!it->is_regular_file(gone)) continue;
      const auto time = it->last_write_time(gone);
      const uint64_t size = it->file_size(gone);
      if (!gone) found.emplace_back(time, it->path(), size);
    }
    std::sort(found.begin(), found.end());
    for (const auto& [time, path, size] : found) use(path, size);
    make_room(0);
  }

  fs::path folder_;
  struct Block {
    fs::path path;
    uint64_t size = 0;
    bool written = true;
  };
  uint64_t limit_, bytes_ = 0;
  std::list<Block> blocks_;
  std::unordered_map<std::string, std::list<Block>::iterator> places_;
  std::string warning_;
};

}  // namespace

struct BlockCache::State {
  using Key = std::pair<uint64_t, uint64_t>;  // object, number
  struct Entry {
    Bytes bytes;
    std::list<Key>::iterator place;
  };

  BlockCacheOptions options;
  mutable std::mutex mutex;  // guards all below
  std::map<Key, Entry> memory;
  std::list<Key> order;  // of use, oldest first
  uint64_t memory_used = 0;
  std::map<Key, std::shared_future<Bytes>> under_way;
  DiskBlocks disk;
  Counts counts;

  std::condition_variable work;
  std::deque<std::pair<std::shared_ptr<const RemoteObject>, uint64_t>> queue;
  std::set<Key> queued;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;

  explicit State(BlockCacheOptions given)
      : options(std::move(given)), disk(options.folder, options.disk_bytes) {}

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    work.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  static uint64_t id_of(const RemoteObject& object) { return fnv1a(object.url() + "\n" + object.version()); }

  Bytes block(const std::shared_ptr<const RemoteObject>& object, uint64_t number) {
    const Key key{id_of(*object), number};
    std::unique_lock lock(mutex);
    if (const auto found = memory.find(key); found != memory.end()) {
      ++counts.from_memory;
      order.splice(order.end(), order, found->second.place);
      return found->second.bytes;
    }
    if (const auto found = under_way.find(key); found != under_way.end()) {
      const std::shared_future<Bytes> future = found->second;
      lock.unlock();
      return future.get();
    }
    std::promise<Bytes> promise;
    under_way.emplace(key, promise.get_future().share());
    lock.unlock();
    try {
      const Bytes bytes = load(*object, key);
      lock.lock();
      keep(key, bytes);
      under_way.erase(key);
      promise.set_value(bytes);
      return bytes;
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      under_way.erase(key);
      promise.set_exception(std::current_exception());
      throw;
    }
  }

  Bytes load(const RemoteObject& object, const Key& key) {
    const uint64_t offset = key.second * options.block_bytes,
                   size = std::min(options.block_bytes, object.size() - offset);
    fs::path path;
    {
      const std::lock_guard lock(mutex);
      if (disk.on()) path = disk.path(key.first, key.second);
    }
    if (!path.empty())
      if (auto bytes = read_block(path, size)) {
        const std::lock_guard lock(mutex);
        ++counts.from_disk;
        disk.use(path, size + sizeof(uint32_t));
        return std::move(*bytes);
      }
    std::vector<uint8_t> fetched = object.fetch(offset, size);
    if (!path.empty()) write_block(path, fetched);
    const std::lock_guard lock(mutex);
    ++counts.fetched;
    return Bytes(std::move(fetched));
  }

  static std::optional<Bytes> read_block(const fs::path& path, uint64_t size) {
    std::error_code error;
    if (fs::file_size(path, error) != size + sizeof(uint32_t) || error) return std::nullopt;
    try {
      std::vector<uint8_t> bytes = read_file(path);
      uint32_t crc = 0;
      if (bytes.size() != size + sizeof crc) return std::nullopt;
      std::memcpy(&crc, bytes.data() + size, sizeof crc);
      bytes.resize(size);
      if (crc32c(bytes.data(), size) != crc) return std::nullopt;
      fs::last_write_time(path, fs::file_time_type::clock::now(),
                          error);  // used just now, for other processes
      return Bytes(std::move(bytes));
    } catch (const IoError&) {
      return std::nullopt;  // removed by another process in between
    }
  }

  void write_block(const fs::path& path, const std::vector<uint8_t>& bytes) {
    const uint32_t crc = crc32c(bytes.data(), bytes.size());
    const uint64_t size = bytes.size() + sizeof crc;
    {
      const std::lock_guard lock(mutex);
      if (!disk.on() || !disk.make_room(size)) return;
      disk.use(path, size, false);
    }
    try {
      AtomicFile file(path);
      file.write(bytes.data(), bytes.size());
      file.write(&crc, sizeof crc);
      file.commit();
      const std::lock_guard lock(mutex);
      disk.written(path);
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      disk.forget(path);
      if (disk.on()) {
        disk.give_up(error.what());
        fmt::print(stderr, "warning: {}\n", disk.warning());
      }
    }
  }

  void keep(const Key& key, const Bytes& bytes) {
    if (bytes.size() > options.memory_bytes) return;
    while (memory_used + bytes.size() > options.memory_bytes) {
      const auto oldest = memory.find(order.front());
      memory_used -= oldest->second.bytes.size();
      memory.erase(oldest);
      order.pop_front();
    }
    memory_used += bytes.size();
    memory[key] = {bytes, order.insert(order.end(), key)};
  }

  void prefetch(const std::shared_ptr<const RemoteObject>& object, uint64_t number) {
    const Key key{id_of(*object), number};
    const std::lock_guard lock(mutex);
    if (memory.contains(key) || under_way.contains(key) || queued.contains(key) ||
        queue.size() >= most_queued)
      return;
    if (threads.empty())
      for (int i = 0; i < options.downloads; ++i) threads.emplace_back([this] { download(); });
    queue.emplace_back(object, number);
    queued.insert(key);
    work.notify_one();
  }

  void download() {
    stop_http_when(&stop);
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stop || !queue.empty(); });
      if (stop) return;
      const auto [object, number] = queue.front();
      queue.pop_front();
      lock.unlock();
      try {
        (void)block(object, number);
      } catch (const std::exception&) {
        // Who needs the block asks for it again, and is told.
      }
      lock.lock();
      queued.erase({id_of(*object), number});
    }
  }
};

BlockCache::BlockCache(BlockCacheOptions options) : state_(std::make_unique<State>(std::move(options))) {}
BlockCache::~BlockCache() = default;

BlockCache& BlockCache::global() {
  static BlockCache cache([] {
    BlockCacheOptions options;
    if (const auto folder = cache_folder("data")) options.folder = *folder;
    if (const char* limit = std::getenv("MILLRACE_DATA_CACHE"); limit && *limit)
      options.disk_bytes = std::string_view(limit) == "0"
                               ? 0
                               : static_cast<uint64_t>(parse_bytes("MILLRACE_DATA_CACHE", limit));
    return options;
  }());
  return cache;
}

Bytes BlockCache::block(const std::shared_ptr<const RemoteObject>& object, uint64_t number) {
  return state_->block(object, number);
}
void BlockCache::prefetch(const std::shared_ptr<const RemoteObject>& object, uint64_t number) {
  state_->prefetch(object, number);
}
uint64_t BlockCache::block_bytes() const { return state_->options.block_bytes; }

BlockCache::Counts BlockCache::counts() const {
  const std::lock_guard lock(state_->mutex);
  Counts counts = state_->counts;
  counts.disk_bytes = state_->disk.bytes();
  return counts;
}

std::string BlockCache::warning() const {
  const std::lock_guard lock(state_->mutex);
  return state_->disk.warning();
}

namespace {

class CachedFile final : public RandomAccessFile {
 public:
  CachedFile(std::shared_ptr<const RemoteObject> object, BlockCache& cache)
      : RandomAccessFile(object->url()), object_(std::move(object)), cache_(cache) {}

  uint64_t size() const override { return object_->size(); }
  int64_t version() const override { return static_cast<int64_t>(fnv1a(object_->version()) >> 1); }

  Bytes read(uint64_t offset, uint64_t size) const override {
    require_range(offset, size);
    if (size == 0) return {};
    const uint64_t block = cache_.block_bytes(), first = offset / block, last = (offset + size - 1) / block;
    if (next_.exchange(last + 1, std::memory_order_relaxed) == first)
      for (uint64_t i = last + 1; i <= last + ahead && i * block < object_->size(); ++i)
        cache_.prefetch(object_, i);
    if (first == last) return cache_.block(object_, first).part(offset - first * block, size);
    will_read(offset, size);
    std::vector<uint8_t> joined;
    joined.reserve(size);
    for (uint64_t i = first; i <= last; ++i) {
      const Bytes bytes = cache_.block(object_, i);
      const uint64_t begin = i == first ? offset - first * block : 0,
                     end = i == last ? offset + size - last * block : bytes.size();
      joined.insert(joined.end(), bytes.data() + begin, bytes.data() + end);
    }
    return Bytes(std::move(joined));
  }

  void will_read(uint64_t offset, uint64_t size) const override {
    const uint64_t block = cache_.block_bytes();
    for (uint64_t i = offset / block; size > 0 && i <= (offset + size - 1) / block; ++i)
      cache_.prefetch(object_, i);
  }

 private:
  static constexpr uint64_t ahead = 4;
  std::shared_ptr<const RemoteObject> object_;
  BlockCache& cache_;
  mutable std::atomic<uint64_t> next_{0};
};

}  // namespace

std::shared_ptr<const RandomAccessFile> cached_file(std::shared_ptr<const RemoteObject> object,
                                                    BlockCache& cache) {
  return std::make_shared<CachedFile>(std::move(object), cache);
}

}  // namespace millrace::data
