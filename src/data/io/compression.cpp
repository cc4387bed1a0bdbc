#include "data/io/compression.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/format.h"
#include "base/has_at.h"

namespace millrace::data {
namespace {

struct Suffix {
  const char* text;
  Compression compression;
};
constexpr Suffix suffixes[] = {{".gz", Compression::gzip},
                               {".bz2", Compression::bzip2},
                               {".xz", Compression::xz},
                               {".zst", Compression::zstd}};

const Suffix* suffix_of(std::string_view name) {
  for (const Suffix& suffix : suffixes) {
    const std::string_view text = suffix.text;
    if (name.size() > text.size() &&
        std::equal(text.begin(), text.end(), name.end() - static_cast<ptrdiff_t>(text.size()),
                   [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); }))
      return &suffix;
  }
  return nullptr;
}

}  // namespace

Compression compression_of(std::string_view name) {
  const Suffix* suffix = suffix_of(name);
  return suffix ? suffix->compression : Compression::none;
}

std::string_view without_compression(std::string_view name) {
  const Suffix* suffix = suffix_of(name);
  return suffix ? name.substr(0, name.size() - std::strlen(suffix->text)) : name;
}

Compression compression_of(std::span<const uint8_t> head) {
  if (has_at(head, 0, "\x1f\x8b\x08")) return Compression::gzip;
  if (has_at(head, 0, "BZh")) return Compression::bzip2;
  if (has_at(head, 0,
             "\xfd"
             "7zXZ"))
    return Compression::xz;
  if (has_at(head, 0, "\x28\xb5\x2f\xfd")) return Compression::zstd;
  return Compression::none;
}

std::shared_ptr<const RandomAccessFile> decompress_file(const RandomAccessFile& file, Compression compression,
                                                        uint64_t limit) {
  try {
    return memory_file(file.path(), Bytes(decompress(compression, file.read(0, file.size()).view(), limit)));
  } catch (const InputError& error) {
    fail<InputError>("{}: {}", file.path(), error.what());
  }
}

uint64_t unpacked_limit(uint64_t packed) {
  const uint64_t memory =
      static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE));
  return std::min<uint64_t>(memory / 2, 200 * packed + (64u << 20));
}

bool is_deflated(std::span<const uint8_t> head) {
  if (head.size() < 2) return false;
  const bool gzip = head[0] == 0x1f && head[1] == 0x8b;
  return gzip || ((head[0] & 0x0f) == 8 && head[0] >> 4 <= 7 && (head[0] * 256 + head[1]) % 31 == 0);
}

std::vector<uint8_t> deflated_head(std::span<const uint8_t> bytes, size_t size) {
  std::vector<uint8_t> out(size);
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 32) != Z_OK) return {};
  stream.next_in = const_cast<uint8_t*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(size);
  inflate(&stream, Z_NO_FLUSH);
  out.resize(size - stream.avail_out);
  inflateEnd(&stream);
  return out;
}

std::vector<uint8_t> pack_zstd(std::span<const uint8_t> bytes) {
  constexpr int level = 3;
  std::vector<uint8_t> out(ZSTD_compressBound(bytes.size()));
  const size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), level);
  if (ZSTD_isError(size)) fail<Error>("zstd: {}", ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

}  // namespace millrace::data
