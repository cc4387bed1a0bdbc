#include "data/io/unpacked_file.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/format.h"
#include "data/io/byte_stream.h"
#include "data/io/compression.h"
#include "data/io/location.h"
#include "data/io/temporary_file.h"

namespace millrace::data {
namespace {

Compression packed_by(const RandomAccessFile& file) {
  return compression_of(file.read(0, std::min<uint64_t>(file.size(), 8)).view());
}

/// The bytes of a file, one after the other.
class FileBytes final : public ByteStream {
 public:
  explicit FileBytes(const RandomAccessFile& file) : file_(file) {}
  size_t read(std::span<uint8_t> out) override {
    const uint64_t size = std::min<uint64_t>(out.size(), file_.size() - at_);
    const Bytes bytes = file_.read(at_, size);
    std::copy(bytes.view().begin(), bytes.view().end(), out.begin());
    at_ += size;
    return size;
  }
  void stop() override {}

 private:
  const RandomAccessFile& file_;
  uint64_t at_ = 0;
};

/// Of the version that the packed one has.
class UnpackedFile final : public RandomAccessFile {
 public:
  UnpackedFile(const RandomAccessFile& packed, Bytes bytes)
      : RandomAccessFile(packed.path()), version_(packed.version()), bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.size(); }
  int64_t version() const override { return version_; }
  Bytes read(uint64_t offset, uint64_t size) const override {
    require_range(offset, size);
    return bytes_.part(offset, size);
  }

 private:
  int64_t version_;
  Bytes bytes_;
};

Bytes content_of(const RandomAccessFile& packed) {
  constexpr uint64_t most_times = 200, most_more = 64 << 20;  // real data is far from it, bombs are not
  const uint64_t limit = most_times * packed.size() + most_more;
  const Compression compression = packed_by(packed);
  if (compression != Compression::gzip && compression != Compression::zstd)
    return Bytes(decompress_file(packed.path(), compression, packed.read(0, packed.size()).view(),
                                 std::min(limit, unpacked_limit(packed.size()))));
  TemporaryFile file;
  const auto stream = unpacked(packed.path(), std::make_unique<FileBytes>(packed));
  std::vector<uint8_t> buffer(1 << 20);
  while (const size_t got = stream->read(buffer)) {
    file.add(std::span<const uint8_t>(buffer).first(got), packed.path());
    if (file.size() > limit)
      fail<InputError>(
          "{}: holds more than {} times its {} bytes and {} MB; unpack it first, if it is what it should be",
          packed.path(), most_times, packed.size(), most_more >> 20);
  }
  return file.map();
}

}  // namespace

bool is_packed(const RandomAccessFile& file) { return packed_by(file) != Compression::none; }

std::shared_ptr<const RandomAccessFile> unpacked_file(const std::shared_ptr<const RandomAccessFile>& packed) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const RandomAccessFile>> kept;
  const std::lock_guard lock(mutex);
  auto& file = kept[packed->path()];
  const bool same =
      file && file->version() == packed->version() && (file->version() != 0 || is_piped(packed->path()));
  if (!same) file = std::make_shared<UnpackedFile>(*packed, content_of(*packed));
  return file;
}

}  // namespace millrace::data
