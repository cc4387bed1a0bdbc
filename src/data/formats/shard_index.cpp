#include "data/formats/shard_index.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/format.h"

namespace millrace::data {
namespace {

constexpr int version = 1;

}  // namespace

std::filesystem::path shard_index_path(const std::filesystem::path& shard) {
  const std::string stem = shard.stem().string();
  const size_t dash = stem.rfind('-');
  if (shard.extension() != ".tar" || dash == std::string::npos || dash + 1 == stem.size() ||
      stem.find_first_not_of("0123456789", dash + 1) != std::string::npos)
    return {};
  return shard.parent_path() / (stem.substr(0, dash) + ".json");
}

std::optional<ShardIndex> read_shard_index(const std::filesystem::path& path) {
  if (path.empty() || !std::filesystem::exists(path)) return std::nullopt;
  try {
    const auto json = nlohmann::json::parse(read_text(path));
    if (!json.is_object() || !json.contains("format") || json["format"] != "millrace-shards")
      return std::nullopt;
    if (const int found = json.at("version").get<int>(); found != version)
      fail<InputError>("{}: index of version {}, this program reads version {}; pack the data again",
                       path.string(), found, version);
    ShardIndex index;
    index.classes = json.at("classes").get<std::vector<std::string>>();
    for (const auto& shard : json.at("shards"))
      index.shards.push_back({shard.at("name").get<std::string>(), shard.at("samples").get<int64_t>(),
                              shard.at("bytes").get<uint64_t>(), shard.at("crc32c").get<uint32_t>()});
    return index;
  } catch (const nlohmann::json::exception& error) {
    fail<InputError>(
        "{}: the index is damaged ({}); pack the data again, or delete it to call classes by number",
        path.string(), error.what());
  }
}

void write_shard_index(const std::filesystem::path& path, const ShardIndex& index) {
  nlohmann::ordered_json json;
  json["format"] = "millrace-shards";
  json["version"] = version;
  json["classes"] = index.classes;
  json["shards"] = nlohmann::ordered_json::array();
  for (const ShardEntry& shard : index.shards)
    json["shards"].push_back(
        {{"name", shard.name}, {"samples", shard.samples}, {"bytes", shard.bytes}, {"crc32c", shard.crc32c}});
  // Class names are bytes from file names and need not be UTF-8; what is not is replaced, not fatal.
  write_file(path, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace millrace::data
