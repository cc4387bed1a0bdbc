// The sidecar of packed shards, NAME.json beside NAME-000000.tar …: JSON, schema version 1:
//   {"format": "millrace-shards", "version": 1, "classes": ["cat", "dog"],
//    "shards": [{"name": "train-000000.tar", "samples": 100000, "bytes": 812359680, "crc32c": 3808858755}]}
// Classes are written as stored_text() does: names that are no UTF-8 keep their bytes.
// Without it shards can be read too, but classes are then called by their numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
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

/// Where the index of a shard lies: "a/train-000003.tar" and "a/train-000003.tar.gz" → "a/train.json";
/// empty for names without "-NUMBER.tar".
std::filesystem::path shard_index_path(const std::filesystem::path& shard);

/// Here or on a server. Nothing when the file does not exist or is another program's; InputError when it is
/// damaged or of another version, RemoteError when the server does not tell.
std::optional<ShardIndex> read_shard_index(const std::filesystem::path& path);
/// The same of its text; `where` is for messages.
std::optional<ShardIndex> parse_shard_index(std::string_view text, const std::string& where);
void write_shard_index(const std::filesystem::path& path, const ShardIndex& index);

/// The list of shards, as the sidecar and pack's journal have it. Reading throws an exception of the JSON
/// library's, or an InputError for a name with a folder and for what is no natural number.
std::vector<ShardEntry> shards_of(const nlohmann::json& list);
nlohmann::ordered_json json_of(const std::vector<ShardEntry>& shards);
/// The same errors.
int64_t natural(const nlohmann::json& object, const char* key);

}  // namespace millrace::data
