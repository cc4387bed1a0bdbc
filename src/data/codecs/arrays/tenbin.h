// WebDataset's .ten files (webdataset/tenbin.py): chunks of i64 "~TenBin~", i64 length, data, padding to 64
// bytes; an array is a header chunk (i64 each: dtype as 8 letters, name as 8 letters, rank, sizes) and a
// chunk of data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/array.h>

namespace millrace::data {

/// The arrays and their names ("" where none was written). InputError, worded to follow a name, when they are
/// damaged.
std::vector<std::pair<std::string, Array>> parse_tenbin(std::span<const uint8_t> bytes);

/// What the columns of such arrays are called: by their names where all have different ones, else "0", "1" …
std::vector<std::string> tenbin_names(const std::vector<std::pair<std::string, Array>>& arrays);

}  // namespace millrace::data
