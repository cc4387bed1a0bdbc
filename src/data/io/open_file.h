// Files of any kind by their names.
#pragma once

#include <memory>
#include <string>

#include <millrace/file.h>

namespace millrace::data {

/// Opens a local file, mapped into memory, a remote one, read through a cache (remote_cache.h), or what a
/// command or standard input gives, read to its end into a temporary file, once in the life of the process.
/// IoError when it is missing, a folder or unreadable, the command fails or the disk is full.
std::shared_ptr<const RandomAccessFile> open_file(const std::string& path);
/// The same of a file that belongs to another and lies beside it, here or on a server; null where there is
/// none. IoError when it is there and cannot be read, or the server does not tell.
std::shared_ptr<const RandomAccessFile> open_beside(const std::string& path);

}  // namespace millrace::data
