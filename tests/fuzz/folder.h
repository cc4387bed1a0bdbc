// For formats of several files: a folder of this process, in memory where there is such a place, removed at
// its end.
#pragma once

#include <filesystem>
#include <fstream>
#include <span>
#include <unistd.h>

#include "base/format.h"

namespace millrace::fuzz {

struct Folder {
  std::filesystem::path path = (::access("/dev/shm", W_OK) == 0 ? std::filesystem::path("/dev/shm")
                                                                : std::filesystem::temp_directory_path()) /
                               fmt::format("millrace-fuzz-{}", ::getpid());
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

inline const std::filesystem::path& folder() {
  static const Folder one;
  return one.path;
}

/// Without waiting for a disk.
inline void put(const std::string& name, std::span<const uint8_t> bytes) {
  std::ofstream(folder() / name, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace millrace::fuzz
