#include "data/io/beside.h"

#include <filesystem>

#include "data/io/location.h"
#include "data/io/open_file.h"
#include "data/io/remote_object.h"

namespace millrace::data {

std::shared_ptr<const RandomAccessFile> open_beside(const std::string& path) {
  std::error_code ignored;
  if (!is_remote(path)) return std::filesystem::is_regular_file(path, ignored) ? open_file(path) : nullptr;
  try {
    return open_file(path);
  } catch (const RemoteMissing&) {
    return nullptr;
  }
}

}  // namespace millrace::data
