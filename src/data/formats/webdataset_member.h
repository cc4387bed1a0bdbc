// A value as a member of a WebDataset tar.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "data/formats/shard_writer.h"

namespace millrace::data {

/// The column's name where that says the kind already, else with the usual extension behind it; the names
/// "image", "audio" and "label" are replaced by it. `usual`: of a picture or sound, by its content.
/// InputError, beginning with `where`, when there is none.
std::string member_extension(const Column& column, const std::string& usual, const std::string& where);

/// What webdataset's default decoders and tar_values.h read back as what it is. The content points into the
/// value, or into `made`. InputError when there is no such member.
ShardMember member_of(const Column& column, const Value& value, std::vector<uint8_t>& made,
                      const std::string& where);

}  // namespace millrace::data
