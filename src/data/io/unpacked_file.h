// Files that are compressed as a whole.
#pragma once

#include <memory>

#include <millrace/file.h>

namespace millrace::data {

/// Is the file compressed as a whole, by gzip, Zstandard, bzip2 or xz?
bool is_packed(const RandomAccessFile& file);

/// What such a file holds, unpacked into a temporary file without a name, once in the life of the process;
/// its path is that of the packed one. InputError when it is damaged, or holds more than 200 times its size
/// and 64 MB.
std::shared_ptr<const RandomAccessFile> unpacked_file(const std::shared_ptr<const RandomAccessFile>& packed);

}  // namespace millrace::data
