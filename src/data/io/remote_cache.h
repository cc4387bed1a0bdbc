// Parts of remote objects, in memory and on disk, within limits that hold.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace millrace::data {

struct RemoteCacheOptions {
  /// What is kept on disk, and what is read on and on, is fetched in blocks of this size; no request is
  /// larger.
  uint64_t block_bytes = uint64_t{4} << 20;
  /// Hard limits. Memory counts all parts, also those that are on their way.
  uint64_t memory_bytes = uint64_t{256} << 20, disk_bytes = 10'000'000'000;
  /// Where blocks lie; empty: nowhere. Several processes may share it.
  std::filesystem::path folder;
};

/// A piece is a block, or the very bytes that are wanted. Blocks are fetched where they stay: on disk, while
/// there is room that no other object in use has; in memory, where all objects that are open fit; and where
/// a thread reads on and on. All else would be fetched again and again to read a little of it: of that come
/// the bytes that are wanted, near ones together (merge_ranges.h). Readers get copies, so that nothing keeps
/// a piece from making room.
///
/// Thread-safe. A damaged or missing block of the disk is fetched anew; a disk that is full or cannot be
/// written stops the writing, with one warning, nothing else.
class RemoteCache {
 public:
  explicit RemoteCache(RemoteCacheOptions options);
  ~RemoteCache();
  RemoteCache(const RemoteCache&) = delete;
  RemoteCache& operator=(const RemoteCache&) = delete;

  /// The process's own: in cache_folder("data"), its limits from MILLRACE_DATA_CACHE ("20GB"; "0": no disk)
  /// and MILLRACE_DATA_CACHE_MEMORY.
  static RemoteCache& global();

  struct Counts {
    uint64_t disk_bytes = 0, memory_bytes = 0;
  };
  Counts counts() const;
  /// What may be kept, and what the objects that are open have.
  uint64_t room() const;
  uint64_t open_bytes() const;

 private:
  friend class RemoteFile;
  friend class ReadAhead;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace::data
