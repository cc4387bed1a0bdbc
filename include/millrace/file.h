// Bytes that several hold, and files that are read in any order, wherever they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::data {

/// Bytes and what keeps them alive: a view into a mapped file, or memory of their own. Copies share.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::span<const uint8_t> view, std::shared_ptr<const void> owner)
      : view_(view), owner_(std::move(owner)) {}
  explicit Bytes(std::vector<uint8_t> own) {
    auto memory = std::make_shared<const std::vector<uint8_t>>(std::move(own));
    view_ = *memory;
    owner_ = std::move(memory);
  }

  std::span<const uint8_t> view() const { return view_; }
  const uint8_t* data() const { return view_.data(); }
  size_t size() const { return view_.size(); }
  std::string_view text() const { return {reinterpret_cast<const char*>(view_.data()), view_.size()}; }
  /// A part that shares the memory; offset + size ≤ size().
  Bytes part(size_t offset, size_t size) const { return {view_.subspan(offset, size), owner_}; }

 private:
  std::span<const uint8_t> view_;
  std::shared_ptr<const void> owner_;
};

/// An opened file. All members may be called from many threads at once.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;

  virtual uint64_t size() const = 0;
  /// The `size` bytes from `offset` on; without a copy where the file is mapped. InputError, naming the file,
  /// when it ends before; IoError when it cannot be read.
  virtual Bytes read(uint64_t offset, uint64_t size) const = 0;
  /// Says that these bytes will be asked for soon, so that what is far away can be on its way; never fails.
  virtual void will_read(uint64_t /*offset*/, uint64_t /*size*/) const {}

  /// Another one after the content has changed: the time of modification in nanoseconds since 1970 of local
  /// files, a hash of what the server calls its version of remote ones; 0: not known.
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

/// Of a data set, one after the other.
using Files = std::vector<std::shared_ptr<const RandomAccessFile>>;

/// Bytes in memory as a file: what a compressed file holds. `path` is for messages, `version` is the packed
/// file's.
std::shared_ptr<const RandomAccessFile> memory_file(const std::string& path, Bytes bytes,
                                                    int64_t version = 0);

}  // namespace millrace::data
