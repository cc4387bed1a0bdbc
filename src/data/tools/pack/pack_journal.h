// How far packing has come, so that it can go on after an interruption: NAME.journal beside the shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/feed.h>

#include "data/formats/shard_index.h"
#include "data/tools/pack/pack_source.h"

namespace millrace::data {

/// JSON, replaced in one step whenever a shard is complete.
struct PackJournal {
  /// Of the command and its source; another one begins anew.
  std::string fingerprint;
  std::vector<ShardEntry> shards;
  /// How many samples of the source the shards take, how many samples they hold, and which were left out.
  int64_t done = 0, samples = 0;
  std::vector<BadSample> bad;
  /// Everything is there, sidecars too.
  bool complete = false;
};

std::filesystem::path journal_path(const std::filesystem::path& out, const std::string& name);
/// Nothing when there is none, or none that can be read: a journal is a help, not data.
std::optional<PackJournal> read_journal(const std::filesystem::path& path);
std::optional<PackJournal> parse_pack_journal(std::string_view text);
void write_journal(const std::filesystem::path& path, const PackJournal& journal);

/// Changes when a file of the source (its size or time) does, or its samples' keys or labels. Remote files
/// count by name.
std::string source_fingerprint(const PackSource& source);

}  // namespace millrace::data
