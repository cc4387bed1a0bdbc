// Any source into WebDataset shards, or files of another format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/feed/loader.h"
#include "data/formats/shard_writer.h"
#include "data/table/source.h"
#include "data/tools/pack/pack_picture.h"

namespace millrace::data {

struct PackOptions {
  /// A new shard begins when the next sample would exceed one of these (shard_writer.h).
  int64_t shard_samples = ShardLimits().samples;
  uint64_t shard_bytes = ShardLimits().bytes;
  PictureRule pictures;
  /// Keys are those of the source (Source::key) instead of numbers.
  bool keep_keys = false;
  /// A format of dataset.h that can be written; empty: WebDataset.
  std::string format;
  /// Index sidecars are written beside the shards (index.h), where the format says where its samples lie.
  bool index = true;
  /// What was written is read back and compared with the source.
  bool verify = false;
  /// So many bad samples may be left out; −1: 1 % of the source.
  int64_t most_bad = -1;
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
  /// What open_source() reads back: "OUT/train-000000.tar" or "OUT/train-{000000..000003}.tar".
  std::string pattern;
  /// Left out.
  std::vector<BadSample> bad;
  /// What verify found: how many differences, and the first of them as messages.
  int64_t different = 0;
  std::vector<std::string> differences;
};

/// Samples that become shards under one name.
struct PackPart {
  std::shared_ptr<const Source> source;
  std::string name;
};

/// Writes OUT/NAME-000000.tar, -000001 … with members KEY.cls and KEY.jpg (pictures as they are stored, or as `pictures` wants
/// them; raw ones as .pgm or .ppm, without loss) and KEY.EXTENSION of every extra column of the source, in the order of the
/// source, KEY its number in eight digits or more (NUMBER-VERSION where there are versions), mode 0444; the sidecar
/// OUT/NAME.json (shard_index.h) with class names, sizes and checksums; and the indices. Each file appears when it is complete, the
/// sidecar last; shards that an older pack under the same name left beyond the new ones are removed. The same source gives
/// the same bytes, but for indices, which hold the shards' times. Another format: OUT/NAME-000000.EXTENSION with columns image,
/// label and the extra ones, no sidecar.
///
/// While it runs, OUT/NAME.journal says how far it has come. Packing the same again after an interruption goes on behind the
/// last complete shard, to the same bytes; another source or other options begin anew.
///
/// Pictures that cannot be decoded, where they have to be, are left out. InputError: too many of them, a NAME that is empty or has
/// '/' or a dot, options out of their range; IoError when the disk is full. Empty when `stop` ended it.
std::vector<PackResult> pack(const std::vector<PackPart>& parts, const std::filesystem::path& out,
                             const PackOptions& options = {});
/// One part; nothing may stop it.
PackResult pack(const Source& source, const std::filesystem::path& out, const std::string& name,
                const PackOptions& options = {});

}  // namespace millrace::data
