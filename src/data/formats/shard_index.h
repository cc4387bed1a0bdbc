// The sidecar of packed shards, NAME.json beside NAME-000000.tar …: JSON, schema version 1:
//   {"format": "millrace-shards", "version": 1, "classes": ["cat", "dog"],
//    "shards": [{"name": "train-000000.tar", "samples": 100000, "bytes": 812359680, "crc32c": 3808858755}]}
// Without it shards can be read too, but classes are then called by their numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace millrace::data {

struct ShardEntry {
  std::string name;  // without folder
  int64_t samples = 0;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;  // of the whole tar
};

struct ShardIndex {
  std::vector<std::string> classes;
  std::vector<ShardEntry> shards;
};

/// Where the index of a shard lies: "a/train-000003.tar" → "a/train.json"; empty for names without
/// "-NUMBER.tar".
std::filesystem::path shard_index_path(const std::filesystem::path& shard);

/// Nothing when the file does not exist or is another program's; InputError when it is damaged or of another
/// version.
std::optional<ShardIndex> read_shard_index(const std::filesystem::path& path);
void write_shard_index(const std::filesystem::path& path, const ShardIndex& index);

}  // namespace millrace::data
