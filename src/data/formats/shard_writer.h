// WebDataset shards being written: what `pack` and the format's writer share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/formats/shard_index.h"

namespace millrace::data {

/// A new shard begins when the next sample would exceed one of these (WebDataset's usual limits).
struct ShardLimits {
  int64_t samples = 100'000;
  uint64_t bytes = 3'000'000'000;
};

struct ShardMember {
  std::string extension;
  std::span<const uint8_t> content;
};

/// One tar. It appears under its name, mode 0444, when it is finished.
class ShardWriter {
 public:
  explicit ShardWriter(const std::filesystem::path& path);

  /// A sample: members KEY.EXTENSION, in the order of their extensions. InputError for a name over 100 bytes.
  void add(const std::string& key, std::vector<ShardMember> members);
  /// True when a sample with so many bytes of content belongs into the next shard.
  bool full(const ShardLimits& limits, uint64_t content) const;
  int64_t samples() const { return samples_; }
  ShardEntry finish();
  /// It will appear under another name in the same folder.
  void rename(const std::filesystem::path& path);

 private:
  void write(const void* data, size_t size);

  AtomicFile file_;
  std::string name_;
  int64_t samples_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace millrace::data
