// Any source into WebDataset shards, or files of another format.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "data/tools/pack/pack_options.h"

namespace millrace::data {

/// Samples that become shards under one name.
struct PackPart {
  std::shared_ptr<const Dataset> set;
  std::string name;
};

/// Writes OUT/NAME-000000.tar, -000001 … with members KEY.cls and KEY.jpg (pictures as they are stored, or as
/// `pictures` wants them; raw ones as .pgm or .ppm, without loss) and KEY.EXTENSION of every extra column of
/// the source, in the order of the source, KEY its number in eight digits or more (NUMBER-VERSION where there
/// are versions), mode 0444; the sidecar OUT/NAME.json (shard_index.h) with class names, sizes and checksums;
/// and the indices. Each file appears when it is complete, the sidecar last; shards that an older pack under
/// the same name left beyond the new ones are removed. The same source gives the same bytes, but for indices,
/// which hold the shards' times. Another format: OUT/NAME-000000.EXTENSION with columns image, label and the
/// extra ones, no sidecar.
///
/// While it runs, OUT/NAME.journal says how far it has come. Packing the same again after an interruption
/// goes on behind the last complete shard, to the same bytes; another source or other options begin anew.
///
/// Pictures that cannot be decoded, where they have to be, are left out. InputError: too many of them, a NAME
/// that is empty or has
/// '/' or a dot, options out of their range; IoError when the disk is full. Empty when `stop` ended it.
std::vector<PackResult> pack(const std::vector<PackPart>& parts, const std::filesystem::path& out,
                             const PackOptions& options = {});

}  // namespace millrace::data
