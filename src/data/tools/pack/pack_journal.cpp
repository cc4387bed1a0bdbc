#include "data/tools/pack/pack_journal.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <millrace/dataset.h>
#include <millrace/feed.h>

#include "base/crc32c.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/format.h"
#include "data/io/expand_paths.h"
#include "data/io/location.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

/// "PATH SIZE TIME" of a file.
std::string file_line(const fs::path& path) {
  std::error_code ignored;
  const auto size = fs::file_size(path, ignored);
  const auto time = fs::last_write_time(path, ignored);
  return fmt::format("{} {} {}\n", path.string(), size, time.time_since_epoch().count());
}

}  // namespace

fs::path journal_path(const fs::path& out, const std::string& name) { return out / (name + ".journal"); }

std::optional<PackJournal> read_journal(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) ? parse_pack_journal(read_text(path)) : std::nullopt;
}

std::optional<PackJournal> parse_pack_journal(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("format") != "millrace-pack-1") return std::nullopt;
    PackJournal journal{json.at("fingerprint").get<std::string>(),
                        shards_of(json.at("shards")),
                        natural(json, "done"),
                        natural(json, "samples"),
                        {},
                        json.at("complete").get<bool>()};
    for (const auto& bad : json.at("bad"))
      journal.bad.push_back(
          {natural(bad, "index"), bad.at("name").get<std::string>(), bad.at("why").get<std::string>()});
    int64_t samples = 0;
    for (const ShardEntry& shard : journal.shards)
      if (__builtin_add_overflow(samples, shard.samples, &samples)) return std::nullopt;
    if (samples != journal.samples) return std::nullopt;
    return journal;
  } catch (const nlohmann::json::exception&) {
  } catch (const InputError&) {
  }
  return std::nullopt;
}

void write_journal(const fs::path& path, const PackJournal& journal) {
  nlohmann::ordered_json json;
  json["format"] = "millrace-pack-1";
  json["fingerprint"] = journal.fingerprint;
  json["done"] = journal.done;
  json["samples"] = journal.samples;
  json["complete"] = journal.complete;
  json["shards"] = json_of(journal.shards);
  json["bad"] = nlohmann::ordered_json::array();
  for (const BadSample& bad : journal.bad)
    json["bad"].push_back({{"index", bad.index}, {"name", bad.name}, {"why", bad.why}});
  write_file(path, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::string source_fingerprint(const PackSource& source) {
  std::string text;
  std::vector<std::string> lines;
  for (const std::string& path : expand_paths(source.set().path())) {
    std::error_code error;
    if (is_remote(path) || !fs::is_directory(path, error)) {
      lines.push_back(is_remote(path) ? path + "\n" : file_line(path));
      continue;
    }
    for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error))
      if (at->is_regular_file(error)) lines.push_back(file_line(at->path()));
  }
  std::sort(lines.begin(), lines.end());
  for (const std::string& line : lines) text += line;
  for (const std::string& name : source.classes()) text += name + "\n";
  text += fmt::format("{}\n", source.count());
  uint32_t crc = 0;
  for (int64_t i = 0; i < source.count(); ++i) {
    const std::string sample = fmt::format("{}={}\n", key_of(source.set(), i), source.label(i));
    crc = crc32c(sample.data(), sample.size(), crc);
  }
  text += fmt::format("{:08x}\n", crc);
  return *hex_digest("xxh128", {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

}  // namespace millrace::data
