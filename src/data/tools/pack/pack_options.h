// What packing is told, and what it tells.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <millrace/feed.h>

#include "data/formats/shard_writer.h"
#include "data/tools/pack/pack_picture.h"

namespace millrace::data {

struct PackOptions {
  ShardLimits shards;
  PictureRule pictures;
  /// Keys are those of the source (key_of() in labels.h) instead of numbers.
  bool keep_keys = false;
  /// A format of dataset.h that can be written; empty: WebDataset.
  std::string format;
  /// Index sidecars are written beside the shards (index.h), where the format says where its samples lie.
  bool index = true;
  /// What was written is read back and compared with the source.
  bool verify = false;
  /// So many bad samples may be left out; −1: 1 % of the source.
  int64_t most_bad = -1;
  /// Files that another program, or another packing, has written may be replaced; those of the source never.
  bool force = false;
  /// 0: as many as there are CPUs. The result does not depend on it.
  int threads = 0;
  /// (what is done: samples packed, or verified; in all)
  std::function<void(int64_t, int64_t)> progress;
  /// What the user should know.
  std::function<void(const std::string&)> note;
  /// True: end after this sample; what is complete stays for the next time.
  std::function<bool()> stop;
};

struct PackResult {
  int64_t samples = 0, shards = 0;
  uint64_t bytes = 0;
  /// What open_dataset() reads back: "OUT/train-000000.tar" or "OUT/train-{000000..000003}.tar".
  std::string pattern;
  /// Left out.
  std::vector<BadSample> bad;
  /// What verify found: how many differences, and the first of them as messages.
  int64_t different = 0;
  std::vector<std::string> differences;
};

}  // namespace millrace::data
