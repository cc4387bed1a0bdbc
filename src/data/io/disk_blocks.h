// Blocks of remote objects on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <span>
#include <string>
#include <utility>

namespace millrace::data {

/// Which block of which object.
using BlockKey = std::pair<uint64_t, uint64_t>;

/// A block is FOLDER/<object>/<number>: its bytes, then the CRC-32C of each of its pages. Several processes
/// may share the folder. Not thread-safe but for read_pages() and write(), which look at one file alone.
class DiskBlocks {
 public:
  /// Blocks are removed beyond `limit` bytes; 0, or no folder: nothing is kept.
  DiskBlocks(std::filesystem::path folder, uint64_t limit);

  bool on() const { return !folder_.empty(); }
  uint64_t limit() const { return on() ? limit_ : 0; }
  uint64_t bytes() const { return bytes_; }
  std::filesystem::path path(const BlockKey& key) const;
  /// Is it known to be there, whole? Its file may still be gone, or damaged.
  bool has(const BlockKey& key) const;

  /// Makes room for a block that is going to be written. Blocks of objects that are open stay: an epoch reads
  /// each of them once, so that to remove one for another would be of no use. False where it is not kept.
  bool admit(const BlockKey& key, uint64_t size);
  void written(const BlockKey& key);
  /// It is not there after all.
  void forget(const BlockKey& key);
  /// It was just read, perhaps another process's: goes last.
  void used(const BlockKey& key, uint64_t size);
  /// Nothing is kept from now on; says so, for a warning.
  std::string give_up(const std::string& why);

  /// Blocks of an object are wanted again and again from now on, or no longer.
  void opened(uint64_t object) { ++open_[object]; }
  void closed(uint64_t object) {
    if (--open_[object] == 0) open_.erase(object);
    refused_ = 0;
  }

  /// Bytes `offset` … of the block of `size` bytes in a file; false where they are missing or damaged.
  static bool read_pages(const std::filesystem::path& path, uint64_t size, uint64_t offset,
                         std::span<uint8_t> out);
  /// IoError.
  static void write(const std::filesystem::path& path, std::span<const uint8_t> bytes);
  static uint64_t file_size(uint64_t size);

 private:
  struct Block {
    BlockKey key;
    uint64_t size = 0;  // of the file
    bool written = true;
  };
  void scan();
  void add(const BlockKey& key, uint64_t size, bool written);

  std::filesystem::path folder_;
  uint64_t limit_, bytes_ = 0;
  uint64_t refused_ = 0;     // so much found no room, and nothing has changed since
  std::list<Block> blocks_;  // the one used least lately first
  std::map<BlockKey, std::list<Block>::iterator> places_;
  std::map<uint64_t, int> open_;
};

}  // namespace millrace::data
