// For writers that know what comes first only at the end.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/format.h"

namespace millrace::data {

/// A nameless file beside the one to be written: the data, until it is known where it goes.
class WriteSpool {
 public:
  explicit WriteSpool(const std::string& path) : path_(path + ".spool") {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code ignored;
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    file_.reset(::fdopen(open_nameless(folder), "w+b"));
  }

  void write(const void* data, size_t size) {
    if (size > 0 && std::fwrite(data, 1, size, file_.get()) != size) fail_writing(path_, "write it", errno);
  }
  void rewind() {
    if (std::fflush(file_.get()) != 0 || std::fseek(file_.get(), 0, SEEK_SET) != 0)
      fail_writing(path_, "write it", errno);
  }
  void read(void* data, size_t size) {
    if (std::fread(data, 1, size, file_.get()) != size) fail<IoError>("{}: cannot be read back", path_);
  }
  /// The next `size` bytes go where they belong.
  void move_to(AtomicFile& file, uint64_t size) {
    std::vector<uint8_t> part(std::min<uint64_t>(size, 1 << 20));
    for (uint64_t left = size; left > 0; left -= part.size()) {
      part.resize(std::min<uint64_t>(part.size(), left));
      read(part.data(), part.size());
      file.write(part.data(), part.size());
    }
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace millrace::data
