// What bytes of unknown meaning look like.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <millrace/dataset.h>

#include "base/utf8.h"

namespace millrace::data {

/// ColumnKind::picture for a file that begins as pictures do (is_picture_content()), audio for WAV and FLAC,
/// text for UTF-8 without control characters (and not empty), else bytes.
ColumnKind content_kind(std::span<const uint8_t> bytes);

/// The extension that says what a picture or sound is, by its first bytes; "" for unknown ones.
std::string content_extension(std::span<const uint8_t> bytes);

/// content_kind() of a file's first bytes; bytes of one that cannot be read.
ColumnKind file_kind(const std::string& path);

}  // namespace millrace::data
