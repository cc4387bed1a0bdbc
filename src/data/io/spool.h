// Data that comes out of a command or in by standard input.
#pragma once

#include <memory>
#include <string>

#include <millrace/file.h>

namespace millrace::data {

/// All that the command (run by sh) or standard input gives, in a temporary file in TMPDIR without a name,
/// read once in the life of the process. IoError when the command fails or the disk is full.
std::shared_ptr<const RandomAccessFile> spooled_file(const std::string& path);

}  // namespace millrace::data
