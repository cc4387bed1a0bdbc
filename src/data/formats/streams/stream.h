// Sources that are read from the beginning to the end, if they have one: the other kind beside indexed ones
// (dataset.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "base/registry.h"
#include "data/io/byte_stream.h"

namespace millrace::data {

/// As much of a stream as is looked at to know it.
constexpr size_t kStreamHead = 1 << 12;

/// Where a sample is. `number` counts the samples from 0 on; `part` and `offset` are the stream's own, for
/// seek(): here the file's number and the byte in it.
struct StreamPlace {
  int64_t number = 0, part = 0, offset = 0;
  bool operator==(const StreamPlace&) const = default;
};

/// A sample as its bytes in the stream: Stream::samples() makes values of them.
struct StreamRecord {
  StreamPlace at;
  Bytes bytes;
  /// Why it is no good; "" when nothing is known against it.
  std::string fault;
};

/// An opened stream of samples. The bytes of samples alone make a file of the stream's format again, so that
/// all parsers are those of the indexed formats.
///
/// A source of messages (Kafka) fits in like this: a record is a message, `part` its partition, `offset` its
/// offset there, `number` how many came before it in the order in which the partitions were read; seek() asks
/// the broker for the offset, and samples() opens what a message holds.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Waits for the next sample; false at the end. InputError when the bytes are damaged so that the next
  /// sample cannot be found, or end within one; IoError when they cannot be read or the command failed;
  /// StreamStopped.
  virtual bool next(StreamRecord& record) = 0;
  /// Goes on from a place that a record had, or from the beginning (all 0). What has no random access is
  /// opened again, and next() then begins before the place: skip by number. InputError for what cannot be had
  /// twice (standard input).
  virtual void seek(const StreamPlace& place) = 0;
  /// Lets a next() that waits throw StreamStopped, until seek(). From any thread.
  virtual void stop() = 0;
  /// What to ask before a sample takes memory, from now on (byte_stream.h); next() throws what it throws.
  /// Before the first next().
  virtual void set_room(SampleRoom room) = 0;

  /// Records of this stream as a data set.
  virtual std::unique_ptr<Dataset> samples(std::span<const StreamRecord> records) const = 0;

  const std::string& path() const { return path_; }
  /// The name of its format (dataset.h).
  virtual const std::string& format() const = 0;

 protected:
  explicit Stream(std::string path) : path_(std::move(path)) {}

 private:
  std::string path_;
};

/// One of several streams; without a name where it is alone.
struct NamedStream {
  std::string name;
  std::unique_ptr<Stream> stream;
};

/// The samples of a stream that a condition (query.h) is true for, found one by one as they come; `number`
/// counts all. It may name what these samples have: their columns of numbers and texts, width and height of
/// pictures, and split where the key says so. What a sample lacks, or what cannot be compared, is missing
/// (query.h). Samples that cannot be read at all are kept, so that they are counted. next() fails with
/// InputError at the end of a pass in which nothing matched, and after the first thousand when nothing of
/// what it asks for was among these.
std::unique_ptr<Stream> select(std::unique_ptr<Stream> stream, const std::string& condition);

/// Opens "pipe:COMMAND", "-", or files (globs and braces, local and remote), of tars, TFRecord, JSON lines,
/// CSV or plain text, plain or compressed as a whole; the format is found from the first bytes, which it
/// waits for. InputError when it is none of these, IoError when it cannot be opened.
std::unique_ptr<Stream> open_stream(const std::string& path);

/// Finds the samples in the bytes of one format; each is a file here with MILLRACE_STREAM_FORMAT(name){…}.
/// One for each stream.
class StreamCutter {
 public:
  virtual ~StreamCutter() = default;
  /// At the beginning of each part, which must be of the same form as the first.
  virtual void begin(StreamInput& /*input*/) {}
  /// The bytes of the next sample into `bytes` (empty), where they begin, so that after begin() next() can go
  /// on from there, and why the sample is bad into `fault`; false at the end of the part.
  virtual bool next(StreamInput& input, std::vector<uint8_t>& bytes, uint64_t& offset,
                    std::string& fault) = 0;
  /// What stands before and behind the samples in a file of the format.
  virtual std::string before() const { return {}; }
  virtual std::string behind() const { return {}; }
};

/// A format that is read as a stream.
struct StreamFormat {
  std::string name;      // of its Format
  std::string doc = {};  // "JSON lines"
  int place = 0;         // in the order in which a stream is tried; the library's have 10, 20 …
  bool (*matches)(std::string_view path, std::span<const uint8_t> head) = nullptr;
  std::unique_ptr<StreamCutter> (*make)() = nullptr;
};

#define MILLRACE_STREAM_FORMAT(NAME)              \
  extern const StreamFormat stream_format_##NAME; \
  const StreamFormat stream_format_##NAME

Registry<StreamFormat>& stream_formats();
/// Adds a format to those of the library. InputError.
const StreamFormat& register_stream_format(const StreamFormat& format);

/// Samples that take more are taken for damage.
constexpr uint64_t kMostSampleBytes = uint64_t{1} << 30;

}  // namespace millrace::data
