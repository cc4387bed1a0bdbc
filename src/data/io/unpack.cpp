// Unpacking what gzip (zlib), bzip2 (libbz2), xz (liblzma) and zstd (libzstd) packed: streams, and whole
// contents in memory.
#include <algorithm>
#include <bzlib.h>
#include <cstring>
#include <functional>
#include <lzma.h>
#include <memory>
#include <utility>
#include <zlib.h>
#include <zstd.h>

#include "base/format.h"
#include "data/io/byte_stream.h"
#include "data/io/compression.h"

namespace millrace::data {
namespace {

/// Where packed bytes come from: some each time, none only at the end.
using PackedBytes = std::function<std::span<const uint8_t>()>;

/// Contents that follow each other are joined. InputError, beginning with `where`, when the bytes are damaged
/// or end early.
class Unpacking {
 public:
  virtual ~Unpacking() = default;
  Unpacking(const Unpacking&) = delete;
  Unpacking& operator=(const Unpacking&) = delete;

  /// Unpacks into a part of `out`, which is not empty; how much that was, 0 at the end.
  size_t read(std::span<uint8_t> out) {
    const size_t room = out.size();
    while (out.size() == room) {
      if (in_.empty() && !more_inside_ && !over_) {
        in_ = packed_();
        over_ = in_.empty();
      }
      if (between_ && (in_.empty() || !begins(in_[0]))) return 0;
      between_ = step(in_, out, over_);
      more_inside_ = out.empty() && !between_;
      if (over_ && !between_ && out.size() == room) damaged("it ends early");
    }
    return room - out.size();
  }

 protected:
  Unpacking(const char* kind, std::string where, PackedBytes packed)
      : kind_(kind), where_(std::move(where)), packed_(std::move(packed)) {}
  [[noreturn]] void damaged(const char* why) const {
    fail<InputError>("{}is damaged: no whole {} content ({}); copy it again", where_, kind_, why);
  }
  /// Takes bytes of `in` and fills `out`; both begin behind what was used then. True at the end of a content.
  /// `last`: no other bytes come behind those of `in`.
  virtual bool step(std::span<const uint8_t>& in, std::span<uint8_t>& out, bool last) = 0;
  /// Whether what begins so behind a content is another one.
  virtual bool begins(uint8_t /*first*/) const { return true; }

 private:
  const char* kind_;
  std::string where_;
  PackedBytes packed_;
  std::span<const uint8_t> in_;
  bool between_ = false;      // contents
  bool more_inside_ = false;  // there may be more without more input
  bool over_ = false;         // the input
};

/// A step of zlib, libbz2 or liblzma, whose streams are alike.
template <typename Stream, typename Code>
auto run_step(Stream& stream, std::span<const uint8_t>& in, std::span<uint8_t>& out, Code&& code) {
  constexpr size_t most = size_t{1} << 30;  // the first two count in 32 bits
  const size_t size = std::min(in.size(), most), room = std::min(out.size(), most);
  stream.next_in = reinterpret_cast<decltype(stream.next_in)>(const_cast<uint8_t*>(in.data()));
  stream.avail_in = static_cast<decltype(stream.avail_in)>(size);
  stream.next_out = reinterpret_cast<decltype(stream.next_out)>(out.data());
  stream.avail_out = static_cast<decltype(stream.avail_out)>(room);
  const auto status = code(&stream);
  in = in.subspan(size - stream.avail_in);
  out = out.subspan(room - stream.avail_out);
  return status;
}

/// Deflate with a frame around it as gzip or zlib have it, or, as in zip, with none.
class Inflating final : public Unpacking {
 public:
  Inflating(bool framed, std::string where, PackedBytes packed)
      : Unpacking(framed ? "gzip" : "zip", std::move(where), std::move(packed)), framed_(framed) {
    if (inflateInit2(&stream_, framed ? 15 + 32 : -15) != Z_OK) damaged("no memory");
  }
  ~Inflating() override { inflateEnd(&stream_); }

 private:
  bool step(std::span<const uint8_t>& in, std::span<uint8_t>& out, bool) override {
    const int status = run_step(stream_, in, out, [](z_stream* s) { return inflate(s, Z_NO_FLUSH); });
    if (status != Z_STREAM_END && status != Z_OK && status != Z_BUF_ERROR)
      damaged(stream_.msg ? stream_.msg : "bad data");
    if (status == Z_STREAM_END) inflateReset(&stream_);
    return status == Z_STREAM_END;
  }
  /// Anything else is padding, as gzip itself takes it.
  bool begins(uint8_t first) const override { return framed_ && first == 0x1f; }

  bool framed_;
  z_stream stream_{};
};

class Unbzipping final : public Unpacking {
 public:
  Unbzipping(std::string where, PackedBytes packed)
      : Unpacking("bzip2", std::move(where), std::move(packed)) {
    begin();
  }
  ~Unbzipping() override { BZ2_bzDecompressEnd(&stream_); }

 private:
  void begin() {
    stream_ = {};
    if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) damaged("no memory");
  }
  bool step(std::span<const uint8_t>& in, std::span<uint8_t>& out, bool) override {
    const int status = run_step(stream_, in, out, BZ2_bzDecompress);
    if (status == BZ_OK) return false;
    if (status != BZ_STREAM_END) damaged("bad data");
    BZ2_bzDecompressEnd(&stream_);
    begin();
    return true;
  }

  bz_stream stream_{};
};

class Unxzing final : public Unpacking {
 public:
  Unxzing(std::string where, PackedBytes packed) : Unpacking("xz", std::move(where), std::move(packed)) {
    constexpr uint64_t most_memory = uint64_t{256} << 20;  // xz -9 needs 65 MB
    if (lzma_stream_decoder(&stream_, most_memory, LZMA_CONCATENATED) != LZMA_OK) damaged("no memory");
  }
  ~Unxzing() override { lzma_end(&stream_); }

 private:
  bool step(std::span<const uint8_t>& in, std::span<uint8_t>& out, bool last) override {
    const lzma_ret status = run_step(
        stream_, in, out, [last](lzma_stream* s) { return lzma_code(s, last ? LZMA_FINISH : LZMA_RUN); });
    if (status == LZMA_MEMLIMIT_ERROR) damaged("its dictionary is over 256 MB");
    if (status != LZMA_OK && status != LZMA_STREAM_END && status != LZMA_BUF_ERROR) damaged("bad data");
    return status == LZMA_STREAM_END;
  }

  lzma_stream stream_ = LZMA_STREAM_INIT;
};

class Unzstding final : public Unpacking {
 public:
  Unzstding(std::string where, PackedBytes packed)
      : Unpacking("zstd", std::move(where), std::move(packed)),
        stream_(ZSTD_createDStream(), &ZSTD_freeDStream) {
    if (!stream_) damaged("no memory");
  }

 private:
  bool step(std::span<const uint8_t>& in, std::span<uint8_t>& out, bool) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const size_t left = ZSTD_decompressStream(stream_.get(), &to, &from);
    if (ZSTD_isError(left)) damaged(ZSTD_getErrorName(left));
    in = in.subspan(from.pos);
    out = out.subspan(to.pos);
    return left == 0;
  }

  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream_;
};

/// Null for Compression::none.
std::unique_ptr<Unpacking> unpacking(Compression compression, const std::string& where, PackedBytes packed) {
  switch (compression) {
    case Compression::gzip:
      return std::make_unique<Inflating>(true, where, std::move(packed));
    case Compression::bzip2:
      return std::make_unique<Unbzipping>(where, std::move(packed));
    case Compression::xz:
      return std::make_unique<Unxzing>(where, std::move(packed));
    case Compression::zstd:
      return std::make_unique<Unzstding>(where, std::move(packed));
    case Compression::none:
      break;
  }
  return nullptr;
}

/// These, and nothing behind them.
PackedBytes once(std::span<const uint8_t> bytes) {
  return [bytes]() mutable { return std::exchange(bytes, {}); };
}

/// All that it gives; the memory grows by doubling up to the limit.
std::vector<uint8_t> read_all(Unpacking& packed, uint64_t limit) {
  std::vector<uint8_t> out;
  for (size_t done = 0;;) {
    // One byte more than allowed, so that exactly the limit is no error.
    if (done == out.size())
      out.resize(static_cast<size_t>(std::min<uint64_t>(limit + 1, std::max<size_t>(1 << 14, 2 * done))));
    const size_t got = packed.read(std::span(out).subspan(done));
    done += got;
    if (done > limit) fail<InputError>("unpacks to more than {} MB; unpack it first", limit >> 20);
    if (got > 0) continue;
    out.resize(done);
    return out;
  }
}

/// Looks at the first bytes when they are asked for, not before: a command may take its time.
class Unpacked final : public ByteStream {
 public:
  Unpacked(std::string path, std::unique_ptr<ByteStream> bytes)
      : path_(std::move(path)), bytes_(std::move(bytes)) {}
  size_t read(std::span<uint8_t> out) override {
    begin();
    if (unpacking_) return unpacking_->read(out);
    if (head_.empty()) return bytes_->read(out);
    const size_t size = std::min(out.size(), head_.size());
    std::memcpy(out.data(), head_.data(), size);
    head_ = head_.subspan(size);
    return size;
  }
  bool seek(uint64_t offset) override {
    begin();
    if (unpacking_ || !bytes_->seek(offset)) return false;
    head_ = {};
    return true;
  }
  void stop() override { bytes_->stop(); }

 private:
  void begin() {
    if (std::exchange(begun_, true)) return;
    buffer_.resize(8);
    size_t size = 0;
    while (size < buffer_.size()) {
      const size_t got = bytes_->read(std::span(buffer_).subspan(size));
      if (got == 0) break;
      size += got;
    }
    head_ = std::span(buffer_).first(size);
    unpacking_ = unpacking(compression_of(head_), path_ + ": ", [this] { return more(); });
  }
  std::span<const uint8_t> more() {
    if (!head_.empty()) return std::exchange(head_, {});
    buffer_.resize(1 << 17);
    return std::span(buffer_).first(bytes_->read(buffer_));
  }

  std::string path_;
  std::unique_ptr<ByteStream> bytes_;
  std::vector<uint8_t> buffer_;
  std::span<const uint8_t> head_;  // what was looked at and nobody took yet
  std::unique_ptr<Unpacking> unpacking_;
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> unpacked(const std::string& path, std::unique_ptr<ByteStream> bytes) {
  return std::make_unique<Unpacked>(path, std::move(bytes));
}

std::vector<uint8_t> decompress(Compression compression, std::span<const uint8_t> bytes, uint64_t limit) {
  const auto whole = unpacking(compression, "", once(bytes));
  if (!whole) return {bytes.begin(), bytes.end()};
  if (bytes.empty()) fail<InputError>("is empty; copy it again");
  return read_all(*whole, limit);
}

std::vector<uint8_t> inflate_raw(std::span<const uint8_t> bytes, uint64_t size) {
  Inflating whole(false, "", once(bytes));
  std::vector<uint8_t> out = read_all(whole, size);
  if (out.size() != size)
    fail<InputError>("is damaged: no whole zip content (a size that differs); copy it again");
  return out;
}

}  // namespace millrace::data
