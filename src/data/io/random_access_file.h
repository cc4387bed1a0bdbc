// Files that are read in any order, wherever they lie.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "data/io/bytes.h"

namespace millrace::data {

/// An opened file. All members may be called from many threads at once.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;

  virtual uint64_t size() const = 0;
  /// The `size` bytes from `offset` on; without a copy where the file is mapped. InputError, naming the file, when it ends
  /// before; IoError when it cannot be read.
  virtual Bytes read(uint64_t offset, uint64_t size) const = 0;
  /// Says that these bytes will be asked for soon, so that what is far away can be on its way; never fails.
  virtual void will_read(uint64_t /*offset*/, uint64_t /*size*/) const {}

  /// Another one after the content has changed: the time of modification in nanoseconds since 1970 of local files, a hash of
  /// what the server calls its version of remote ones; 0: not known.
  virtual int64_t version() const { return 0; }

  /// What it was opened from, for messages.
  const std::string& path() const { return path_; }

 protected:
  explicit RandomAccessFile(std::string path) : path_(std::move(path)) {}
  /// InputError when [offset, offset + size) does not lie within the file.
  void require_range(uint64_t offset, uint64_t size) const;

 private:
  std::string path_;
};

/// Bytes in memory as a file: what a compressed file holds. `path` is for messages.
std::shared_ptr<const RandomAccessFile> memory_file(const std::string& path, Bytes bytes);

}  // namespace millrace::data
