#include "data/io/compression.h"

#include <algorithm>
#include <bzlib.h>
#include <cctype>
#include <cstring>
#include <lzma.h>
#include <memory>
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

/// The output, which grows by doubling up to the limit.
struct Output {
  std::vector<uint8_t> bytes;
  size_t done = 0;
  uint64_t limit;

  explicit Output(uint64_t most) : limit(most) {}
  /// There is room for at least a byte.
  void grow() {
    if (done < bytes.size()) return;
    // One byte more than allowed, so that exactly the limit is no error.
    if (done > limit) fail<InputError>("unpacks to more than {} MB; unpack it first", limit >> 20);
    bytes.resize(static_cast<size_t>(std::min<uint64_t>(limit + 1, std::max<size_t>(1 << 14, 2 * done))));
  }
  std::vector<uint8_t> finish() {
    if (done > limit) fail<InputError>("unpacks to more than {} MB; unpack it first", limit >> 20);
    bytes.resize(done);
    return std::move(bytes);
  }
};

[[noreturn]] void damaged(const char* kind, const char* why) {
  fail<InputError>("is damaged: no whole {} content ({}); copy it again", kind, why);
}

constexpr size_t step = size_t{1} << 30;  // libraries count in 32 bits

/// Deflate with a frame around it as gzip or zlib have it, or (of `kind` "zip") with none.
std::vector<uint8_t> unzip(std::span<const uint8_t> bytes, Output out, const char* kind = "gzip") {
  const bool framed = std::string_view(kind) == "gzip";
  z_stream stream{};
  if (inflateInit2(&stream, framed ? 15 + 32 : -15) != Z_OK) damaged(kind, "no memory");
  const std::unique_ptr<z_stream, void (*)(z_stream*)> closer(&stream, [](z_stream* s) { inflateEnd(s); });
  size_t at = 0;
  while (true) {
    out.grow();
    const size_t in = std::min(bytes.size() - at, step), room = std::min(out.bytes.size() - out.done, step);
    stream.next_in = const_cast<uint8_t*>(bytes.data() + at);
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = out.bytes.data() + out.done;
    stream.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream, Z_NO_FLUSH);
    at += in - stream.avail_in;
    out.done += room - stream.avail_out;
    if (status == Z_STREAM_END) {
      // Another stream may follow; anything else is padding, as gzip itself takes it.
      if (!framed || bytes.size() - at < 2 || bytes[at] != 0x1f || bytes[at + 1] != 0x8b) return out.finish();
      inflateReset(&stream);
    } else if (status == Z_BUF_ERROR || (status == Z_OK && at == bytes.size() && stream.avail_out > 0)) {
      damaged(kind, "it ends early");
    } else if (status != Z_OK) {
      damaged(kind, stream.msg ? stream.msg : "bad data");
    }
  }
}

std::vector<uint8_t> unbzip(std::span<const uint8_t> bytes, Output out) {
  size_t at = 0;
  do {
    bz_stream stream{};
    if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK) damaged("bzip2", "no memory");
    const std::unique_ptr<bz_stream, void (*)(bz_stream*)> closer(
        &stream, [](bz_stream* s) { BZ2_bzDecompressEnd(s); });
    for (int status = BZ_OK; status != BZ_STREAM_END;) {
      out.grow();
      const size_t in = std::min(bytes.size() - at, step), room = std::min(out.bytes.size() - out.done, step);
      stream.next_in = reinterpret_cast<char*>(const_cast<uint8_t*>(bytes.data() + at));
      stream.avail_in = static_cast<unsigned>(in);
      stream.next_out = reinterpret_cast<char*>(out.bytes.data() + out.done);
      stream.avail_out = static_cast<unsigned>(room);
      status = BZ2_bzDecompress(&stream);
      at += in - stream.avail_in;
      out.done += room - stream.avail_out;
      if (status != BZ_OK && status != BZ_STREAM_END) damaged("bzip2", "bad data");
      if (status == BZ_OK && at == bytes.size() && stream.avail_out > 0) damaged("bzip2", "it ends early");
    }
  } while (at < bytes.size());
  return out.finish();
}

std::vector<uint8_t> unxz(std::span<const uint8_t> bytes, Output out) {
  constexpr uint64_t most_memory = uint64_t{256} << 20;  // xz -9 needs 65 MB
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, most_memory, LZMA_CONCATENATED) != LZMA_OK) damaged("xz", "no memory");
  const std::unique_ptr<lzma_stream, void (*)(lzma_stream*)> closer(&stream,
                                                                    [](lzma_stream* s) { lzma_end(s); });
  stream.next_in = bytes.data();
  stream.avail_in = bytes.size();
  while (true) {
    out.grow();
    stream.next_out = out.bytes.data() + out.done;
    stream.avail_out = out.bytes.size() - out.done;
    const lzma_ret status = lzma_code(&stream, stream.avail_in == 0 ? LZMA_FINISH : LZMA_RUN);
    out.done = out.bytes.size() - stream.avail_out;
    if (status == LZMA_STREAM_END) return out.finish();
    if (status == LZMA_MEMLIMIT_ERROR) damaged("xz", "its dictionary is over 256 MB");
    if (status == LZMA_BUF_ERROR) damaged("xz", "it ends early");
    if (status != LZMA_OK) damaged("xz", "bad data");
  }
}

std::vector<uint8_t> unzstd(std::span<const uint8_t> bytes, Output out) {
  const std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(),
                                                                        ZSTD_freeDStream);
  if (!stream) damaged("zstd", "no memory");
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  while (true) {
    out.grow();
    ZSTD_outBuffer to{out.bytes.data(), out.bytes.size(), out.done};
    const size_t left = ZSTD_decompressStream(stream.get(), &to, &in);
    if (ZSTD_isError(left)) damaged("zstd", ZSTD_getErrorName(left));
    const bool room = to.pos < to.size;
    out.done = to.pos;
    if (in.pos == in.size && left == 0) return out.finish();
    if (in.pos == in.size && room) damaged("zstd", "it ends early");
  }
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

std::vector<uint8_t> decompress(Compression compression, std::span<const uint8_t> bytes, uint64_t limit) {
  if (compression != Compression::none && bytes.empty()) fail<InputError>("is empty; copy it again");
  switch (compression) {
    case Compression::gzip:
      return unzip(bytes, Output(limit));
    case Compression::bzip2:
      return unbzip(bytes, Output(limit));
    case Compression::xz:
      return unxz(bytes, Output(limit));
    case Compression::zstd:
      return unzstd(bytes, Output(limit));
    case Compression::none:
      break;
  }
  return {bytes.begin(), bytes.end()};
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
  stream.avail_in = static_cast<uInt>(std::min(bytes.size(), step));
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(size);
  inflate(&stream, Z_NO_FLUSH);
  out.resize(size - stream.avail_out);
  inflateEnd(&stream);
  return out;
}

std::vector<uint8_t> inflate_raw(std::span<const uint8_t> bytes, uint64_t size) {
  std::vector<uint8_t> out = unzip(bytes, Output(size), "zip");
  if (out.size() != size) damaged("zip", "a size that differs");
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
