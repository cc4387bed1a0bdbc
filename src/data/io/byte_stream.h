// Bytes that come one after the other, perhaps without an end: out of a command, from standard input, from
// files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/file.h>

namespace millrace::data {

/// Thrown by a read() that stop() ended; never seen by users.
struct StreamStopped {};

/// read() and seek() are for one thread at a time, stop() for any.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Waits for some bytes; how many came, 0 at the end. IoError when they cannot be read or the command
  /// failed.
  virtual size_t read(std::span<uint8_t> out) = 0;
  /// Goes on from `offset`; false where that cannot be done (pipes, compressed files): open it again and
  /// skip.
  virtual bool seek(uint64_t /*offset*/) { return false; }
  /// Lets a read() that waits, and all later ones, throw StreamStopped.
  virtual void stop() = 0;
};

/// Opens "pipe:COMMAND" (begins the command, by sh, in a process group of its own, so that Ctrl-C in a
/// terminal does not end it), "-" or a file as open_file() does; what is compressed as a whole is unpacked on
/// the way. IoError when that fails.
std::unique_ptr<ByteStream> open_bytes(const std::string& path);

/// The bytes of a file as they are.
std::unique_ptr<ByteStream> file_bytes(std::shared_ptr<const RandomAccessFile> file);

/// The same unpacked, where `bytes` begins as what is compressed does; else as it is.
std::unique_ptr<ByteStream> unpacked(const std::string& path, std::unique_ptr<ByteStream> bytes);

/// Called before a sample that is being read takes `bytes` of memory; waits or throws where there are none.
using SampleRoom = std::function<void(uint64_t bytes)>;

/// A byte stream with a look ahead.
class StreamInput {
 public:
  StreamInput(std::string path, std::unique_ptr<ByteStream> bytes, SampleRoom room = nullptr)
      : path_(std::move(path)), bytes_(std::move(bytes)), room_(std::move(room)) {}

  /// The next bytes without taking them: `size`, fewer only at the end.
  std::span<const uint8_t> peek(size_t size);
  /// What can be had without waiting, at least a byte; nothing at the end.
  std::span<const uint8_t> available() {
    (void)peek(1);
    return std::span<const uint8_t>(buffer_).subspan(begin_, end_ - begin_);
  }
  /// Appends the next `size` bytes to `out`; false when the stream ends before. Memory grows with what really
  /// comes.
  bool take(uint64_t size, std::vector<uint8_t>& out);
  /// To bytes of a sample; asks for room.
  void append(std::span<const uint8_t> bytes, std::vector<uint8_t>& out) const;
  void skip(size_t peeked) {
    begin_ += peeked;
    offset_ += peeked;
  }
  /// Bytes taken so far.
  uint64_t offset() const { return offset_; }
  const std::string& path() const { return path_; }
  /// False where that cannot be done.
  bool seek(uint64_t offset);
  void stop() { bytes_->stop(); }
  void set_room(SampleRoom room) { room_ = std::move(room); }

 private:
  std::string path_;
  std::unique_ptr<ByteStream> bytes_;
  SampleRoom room_;
  std::vector<uint8_t> buffer_;
  size_t begin_ = 0, end_ = 0;
  uint64_t offset_ = 0;
  bool over_ = false;
};

}  // namespace millrace::data
