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

Bytes content_of(const std::shared_ptr<const RandomAccessFile>& packed) {
  constexpr uint64_t most_times = 200, most_more = 64 << 20;  // real data is far from it, bombs are not
  const uint64_t limit = most_times * packed->size() + most_more;
  TemporaryFile file(packed->path());
  const auto stream = unpacked(packed->path(), file_bytes(packed));
  std::vector<uint8_t> buffer(1 << 20);
  while (const size_t got = stream->read(buffer)) {
    file.add(buffer.data(), got);
    if (file.size() > limit)
      fail<InputError>(
          "{}: holds more than {} times its {} bytes and {} MB; unpack it first, if it is what it should be",
          packed->path(), most_times, packed->size(), most_more >> 20);
  }
  return file.map();
}

}  // namespace

bool is_packed(const RandomAccessFile& file) {
  return compression_of(file.read(0, std::min<uint64_t>(file.size(), 8)).view()) != Compression::none;
}

std::shared_ptr<const RandomAccessFile> unpacked_file(const std::shared_ptr<const RandomAccessFile>& packed) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const RandomAccessFile>> kept;
  const std::lock_guard lock(mutex);
  auto& file = kept[packed->path()];
  const bool same =
      file && file->version() == packed->version() && (file->version() != 0 || is_piped(packed->path()));
  if (!same) file = memory_file(packed->path(), content_of(packed), packed->version());
  return file;
}

}  // namespace millrace::data
