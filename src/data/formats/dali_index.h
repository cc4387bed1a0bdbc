// DALI's index of a WebDataset tar (wds2idx.py of NVIDIA/DALI): a line "v1.2 N", then one for each of N
// samples: EXT OFFSET SIZE NAME for each member, offsets being those of contents. v1.1 has no names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::data {

struct DaliMember {
  std::string_view extension, name;  // into the text; no name in v1.1
  uint64_t offset = 0, size = 0;
};

/// "train.tar" → "train.idx".
std::string dali_index_path(const std::string& tar);

/// The members of each sample of a tar, `tar` its bytes. InputError, worded to follow a name, when the text
/// is no such index or does not fit: contents must lie in the tar, behind a header (some are looked at), and
/// the end mark behind the last.
std::vector<std::vector<DaliMember>> parse_dali_index(std::string_view text, std::span<const uint8_t> tar);

}  // namespace millrace::data
