#include "data/decompress.h"

#include <algorithm>
#include <memory>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/format.h"

namespace millrace::data {
namespace {

constexpr size_t step = 1 << 20;

class Inflater {
 public:
  Inflater() {
    // 32: finds out by itself whether it is gzip or zlib.
    if (inflateInit2(&stream_, 15 + 32) != Z_OK) throw Error("zlib: no memory");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream* operator->() { return &stream_; }
  z_stream* get() { return &stream_; }

 private:
  z_stream stream_{};
};

/// Appends to `out` until the input ends, `most` bytes are there, or something is wrong; "" or the reason.
std::string inflate_into(std::span<const uint8_t> bytes, uint64_t most, std::vector<uint8_t>& out) {
  Inflater inflater;
  size_t at = 0;
  bool open = true;
  while (out.size() < most) {
    const size_t before = out.size(), room = std::min<uint64_t>(most - before, std::max(step, before / 2)),
                 in = std::min<size_t>(bytes.size() - at, 1u << 30);
    out.resize(before + room);
    inflater->next_in = const_cast<uint8_t*>(bytes.data() + at);
    inflater->avail_in = static_cast<unsigned>(in);
    inflater->next_out = out.data() + before;
    inflater->avail_out = static_cast<unsigned>(std::min<size_t>(room, 1u << 30));
    const size_t offered = inflater->avail_out;
    const int status = ::inflate(inflater.get(), Z_NO_FLUSH);
    const size_t made = offered - inflater->avail_out, eaten = in - inflater->avail_in;
    out.resize(before + made);
    at += eaten;
    open = status != Z_STREAM_END;
    if (status == Z_STREAM_END) {
      if (at == bytes.size()) return "";
      if (inflateReset(inflater.get()) != Z_OK) return "zlib cannot go on";  // the next member
      continue;
    }
    if (status != Z_OK && status != Z_BUF_ERROR) return inflater->msg ? inflater->msg : "no such data";
    if (made == 0 && eaten == 0) return "it is cut off";
  }
  return open || at < bytes.size() ? "too large" : "";
}

}  // namespace

bool is_deflated(std::span<const uint8_t> head) {
  if (head.size() < 2) return false;
  const bool gzip = head[0] == 0x1f && head[1] == 0x8b;
  return gzip || ((head[0] & 0x0f) == 8 && head[0] >> 4 <= 7 && (head[0] * 256 + head[1]) % 31 == 0);
}

std::vector<uint8_t> inflate_head(std::span<const uint8_t> bytes, size_t most) {
  std::vector<uint8_t> out;
  (void)inflate_into(bytes, most, out);
  return out;
}

std::vector<uint8_t> inflate(const std::string& path, std::span<const uint8_t> bytes) {
  const uint64_t memory =
      static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE));
  const uint64_t most = std::min<uint64_t>(memory / 2, 200 * uint64_t{bytes.size()} + (64u << 20));
  std::vector<uint8_t> out;
  const std::string problem = inflate_into(bytes, most, out);
  if (problem == "too large")
    fail<InputError>(
        "{}: holds more than {} MB, which is too much to unpack into memory; unpack the file with gunzip "
        "first",
        path, most >> 20);
  if (!problem.empty())
    fail<InputError>("{}: cannot be unpacked (after {} bytes): {}; copy the file again", path, out.size(),
                     problem);
  return out;
}

std::vector<uint8_t> unpack_zstd(const std::string& path, std::span<const uint8_t> bytes, uint64_t size) {
  const std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(),
                                                                        ZSTD_freeDStream);
  if (!stream) throw Error("zstd: no memory");
  std::vector<uint8_t> out;
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  size_t status = 1;
  const auto refuse = [&](std::string_view why) {
    fail<InputError>("{}: cannot be unpacked (after {} bytes): {}; copy the file again", path, out.size(),
                     why);
  };
  while (in.pos < in.size || status > 0) {
    // One byte more than is wanted shows whether there is more.
    const size_t before = out.size(),
                 room = std::min<uint64_t>(size + 1 - before, std::max(step, before / 2)), eaten = in.pos;
    out.resize(before + room);
    ZSTD_outBuffer to{out.data() + before, room, 0};
    status = ZSTD_decompressStream(stream.get(), &to, &in);
    out.resize(before + to.pos);
    if (ZSTD_isError(status)) refuse(ZSTD_getErrorName(status));
    if (out.size() > size) refuse(fmt::format("it holds more than the {} bytes that the index says", size));
    if (to.pos == 0 && in.pos == eaten && status > 0) refuse("it is cut off");
  }
  if (out.size() != size) refuse(fmt::format("the index says that it holds {}", size));
  return out;
}

std::vector<uint8_t> pack_zstd(std::span<const uint8_t> bytes, int level) {
  std::vector<uint8_t> out(ZSTD_compressBound(bytes.size()));
  const size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), level);
  if (ZSTD_isError(size)) fail<Error>("zstd: {}", ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

}  // namespace millrace::data
