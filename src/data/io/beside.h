// Files that belong to another one and may be missing.
#pragma once

#include <memory>
#include <string>

#include <millrace/file.h>

namespace millrace::data {

/// Opens a file that lies beside another, here or on a server; null where there is none. IoError when it is
/// there and cannot be read, or the server does not tell.
std::shared_ptr<const RandomAccessFile> open_beside(const std::string& path);

}  // namespace millrace::data
