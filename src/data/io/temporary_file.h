// A file without a name, of which nothing is left however the process ends: what is written first and then
// read in any order.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include <millrace/file.h>

namespace millrace::data {

class TemporaryFile {
 public:
  /// In TMPDIR. `of`: whose data it holds, for messages.
  explicit TemporaryFile(const std::string& of);
  /// In the folder of a file that is going to be written, which is made.
  static TemporaryFile beside(const std::string& path);

  /// All that can be read from the descriptor `from`.
  void fill(int from);
  void add(const void* data, size_t size);
  size_t size() const { return size_; }
  /// The content, mapped; it stays as long as that.
  Bytes map();

 private:
  TemporaryFile(const std::string& of, const std::filesystem::path& folder);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string of_;
  std::filesystem::path folder_;
  std::unique_ptr<std::FILE, Close> file_;
  size_t size_ = 0;
};

}  // namespace millrace::data
