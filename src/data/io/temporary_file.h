// A file without a name in TMPDIR, of which nothing is left however the process ends.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <millrace/file.h>

namespace millrace::data {

class TemporaryFile {
 public:
  TemporaryFile();
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  /// All that can be read from the descriptor `from`; `what` it is, for messages.
  void fill(int from, const std::string& what);
  void add(std::span<const uint8_t> bytes, const std::string& what);
  size_t size() const { return size_; }
  /// The content, mapped; it stays as long as that.
  Bytes map() const;

 private:
  std::string folder_;
  int file_ = -1;
  size_t size_ = 0;
};

}  // namespace millrace::data
