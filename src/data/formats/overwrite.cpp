#include "data/formats/overwrite.h"

#include <optional>
#include <set>
#include <string>
#include <sys/stat.h>
#include <utility>

#include "base/format.h"
#include "data/formats/formats.h"
#include "data/io/expand_paths.h"
#include "data/io/location.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

using FileId = std::pair<dev_t, ino_t>;

/// Of regular files.
std::optional<FileId> file_id(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

std::set<FileId> files_of(const Dataset& source) {
  std::set<FileId> files;
  const auto add = [&](const fs::path& path) {
    if (const auto id = file_id(path)) files.insert(*id);
  };
  const Format* const format = formats().find(source.format());
  if (is_elsewhere(source.path())) return files;
  for (const std::string& path : expand_paths(source.path())) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      add(path);
      if (format && format->beside) add(format->beside(path));
      continue;
    }
    for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error))
      add(at->path());
  }
  return files;
}

}  // namespace

void require_free(const Dataset& source, std::span<const fs::path> outputs, bool force) {
  std::set<FileId> own;
  for (const fs::path& output : outputs) {
    const auto there = file_id(output);
    if (!there) continue;
    if (own.empty()) own = files_of(source);
    if (own.contains(*there))
      fail<InputError>("{}: is a file of {} itself, which would be lost; write to another place",
                       output.string(), source.path());
    if (!force)
      fail<InputError>("{}: is there already; --force replaces it, or write to another place",
                       output.string());
  }
}

}  // namespace millrace::data
