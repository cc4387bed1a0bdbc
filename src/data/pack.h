// Any source into WebDataset shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "data/shard_writer.h"
#include "data/source.h"

namespace millrace::data {

struct PackOptions {
  /// A new shard begins when the next sample would exceed one of these (shard_writer.h).
  int64_t shard_samples = ShardLimits().samples;
  uint64_t shard_bytes = ShardLimits().bytes;
  /// (samples packed, in all)
  std::function<void(int64_t, int64_t)> progress;
};

struct PackResult {
  int64_t samples = 0, shards = 0;
  uint64_t bytes = 0;
  /// What open_source() reads back: "OUT/train-000000.tar" or "OUT/train-{000000..000003}.tar".
  std::string pattern;
};

/// Writes OUT/NAME-000000.tar, -000001 … with members KEY.cls and KEY.jpg (pictures as they are stored; raw ones as .pgm or
/// .ppm, without loss), in the order of the source, KEY its number in eight digits or more, mode 0444; and the sidecar
/// OUT/NAME.json (shard_index.h) with class names, sizes and checksums. Each file appears when it is complete, the
/// sidecar last; shards that an older pack under the same name left beyond the new ones are removed. The same source gives
/// the same bytes. InputError for an empty NAME or one with '/' or a dot; IoError when the disk is full.
PackResult pack(const Source& source, const std::filesystem::path& out, const std::string& name,
                const PackOptions& options = {});

}  // namespace millrace::data
