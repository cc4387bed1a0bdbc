#include "data/formats/shard_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/format.h"
#include "base/utf8.h"
#include "data/io/compression.h"
#include "data/io/open_file.h"

namespace millrace::data {
namespace {

constexpr int version = 1;

std::vector<std::string> class_names_of(const nlohmann::json& list) {
  std::vector<std::string> names;
  for (const auto& name : list) names.push_back(text_of_stored(name.get<std::string>()));
  return names;
}

}  // namespace

std::filesystem::path shard_index_path(const std::filesystem::path& shard) {
  std::string whole = shard.string();
  if (whole.starts_with("http")) whole.resize(std::min(whole.find('#'), whole.size()));  // a fragment
  const std::filesystem::path tar(without_compression(whole));
  const std::string stem = tar.stem().string();
  const size_t dash = stem.rfind('-');
  if (tar.extension() != ".tar" || dash == std::string::npos || dash + 1 == stem.size() ||
      stem.find_first_not_of("0123456789", dash + 1) != std::string::npos)
    return {};
  return tar.parent_path() / (stem.substr(0, dash) + ".json");
}

int64_t natural(const nlohmann::json& object, const char* key) {
  const nlohmann::json& number = object.at(key);
  if (!number.is_number_unsigned() || number.get<uint64_t>() > INT64_MAX)
    fail<InputError>("'{}' is no whole number from 0 to 2^63 - 1", key);
  return number.get<int64_t>();
}

std::vector<ShardEntry> shards_of(const nlohmann::json& list) {
  std::vector<ShardEntry> shards;
  for (const auto& shard : list) {
    const auto name = shard.at("name").get<std::string>();
    if (name.empty() || name[0] == '.' || name.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
      fail<InputError>("'{}' is no name of a shard", name);
    shards.push_back({name, natural(shard, "samples"), static_cast<uint64_t>(natural(shard, "bytes")),
                      static_cast<uint32_t>(natural(shard, "crc32c"))});
  }
  return shards;
}

nlohmann::ordered_json json_of(const std::vector<ShardEntry>& shards) {
  auto list = nlohmann::ordered_json::array();
  for (const ShardEntry& shard : shards)
    list.push_back(
        {{"name", shard.name}, {"samples", shard.samples}, {"bytes", shard.bytes}, {"crc32c", shard.crc32c}});
  return list;
}

std::optional<ShardIndex> parse_shard_index(std::string_view text, const std::string& where) {
  int64_t found = 0;
  try {
    const auto json = nlohmann::json::parse(text);
    if (!json.is_object() || !json.contains("format") || json["format"] != "millrace-shards")
      return std::nullopt;
    found = natural(json, "version");
    if (found == version) return ShardIndex{class_names_of(json.at("classes")), shards_of(json.at("shards"))};
  } catch (const std::exception& error) {
    fail<InputError>(
        "{}: the index is damaged ({}); pack the data again, or delete it to call classes by number", where,
        error.what());
  }
  fail<InputError>("{}: index of version {}, this program reads version {}; pack the data again", where,
                   found, version);
}

std::optional<ShardIndex> read_shard_index(const std::filesystem::path& path) {
  if (path.empty()) return std::nullopt;
  const auto file = open_beside(path.string());
  return file ? parse_shard_index(file->read(0, file->size()).text(), file->path()) : std::nullopt;
}

void write_shard_index(const std::filesystem::path& path, const ShardIndex& index) {
  nlohmann::ordered_json json;
  json["format"] = "millrace-shards";
  json["version"] = version;
  json["classes"] = nlohmann::ordered_json::array();
  // Class names are bytes from names of files and need not be UTF-8.
  for (const std::string& name : index.classes) json["classes"].push_back(stored_text(name));
  json["shards"] = json_of(index.shards);
  write_file(path, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace millrace::data
