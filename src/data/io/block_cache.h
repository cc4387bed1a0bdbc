// Remote objects in blocks, kept in memory and on disk, so that the second epoch, and mostly the first, need
// no network.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <millrace/file.h>

#include "data/io/remote_object.h"

namespace millrace::data {

struct BlockCacheOptions {
  /// A request fetches one block; more are under way at once.
  uint64_t block_bytes = uint64_t{4} << 20;
  /// Hard limits. Blocks used least lately go first.
  uint64_t memory_bytes = uint64_t{256} << 20, disk_bytes = 10'000'000'000;
  /// Where blocks lie; empty: nowhere. Several processes may share it.
  std::filesystem::path folder;
  int downloads = 8;
};

/// Thread-safe. On disk a block is FOLDER/<hash of URL and version>/<number>: its bytes and their CRC-32C. A
/// damaged or missing one is fetched anew; a disk that is full or cannot be written stops the writing, with
/// one warning, nothing else.
class BlockCache {
 public:
  explicit BlockCache(BlockCacheOptions options);
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  /// The process's own: in cache_folder("data"), its limit from MILLRACE_DATA_CACHE ("20GB"; "0": no disk).
  static BlockCache& global();

  /// Block `number` of an object. IoError as RemoteObject::fetch.
  Bytes block(const std::shared_ptr<const RemoteObject>& object, uint64_t number);
  /// Begins to fetch it, unless it is there or enough is under way.
  void prefetch(const std::shared_ptr<const RemoteObject>& object, uint64_t number);
  uint64_t block_bytes() const;

  struct Counts {
    uint64_t from_memory = 0, from_disk = 0, fetched = 0, disk_bytes = 0;
  };
  Counts counts() const;
  /// What is wrong with the disk; empty while all is well.
  std::string warning() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The object as a file, read through the cache. Reading on where the last read ended fetches ahead.
std::shared_ptr<const RandomAccessFile> cached_file(std::shared_ptr<const RemoteObject> object,
                                                    BlockCache& cache);

}  // namespace millrace::data
