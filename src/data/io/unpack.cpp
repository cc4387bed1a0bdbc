#include <algorithm>
#include <cstring>
#include <utility>
#include <zlib.h>
#include <zstd.h>

#include "base/format.h"
#include "data/io/byte_stream.h"
#include "data/io/compression.h"

namespace millrace::data {
namespace {

/// Gives the bytes that were looked at first.
class Pushed final : public ByteStream {
 public:
  Pushed(std::vector<uint8_t> head, std::unique_ptr<ByteStream> rest)
      : head_(std::move(head)), rest_(std::move(rest)) {}
  size_t read(std::span<uint8_t> out) override {
    if (at_ == head_.size()) return rest_->read(out);
    const size_t size = std::min(out.size(), head_.size() - at_);
    std::memcpy(out.data(), head_.data() + at_, size);
    at_ += size;
    return size;
  }
  bool seek(uint64_t offset) override {
    if (!rest_->seek(offset)) return false;
    at_ = head_.size();
    return true;
  }
  void stop() override { rest_->stop(); }

 private:
  std::vector<uint8_t> head_;
  size_t at_ = 0;
  std::unique_ptr<ByteStream> rest_;
};

/// What both have in common: a buffer of packed bytes.
class Unpacking : public ByteStream {
 public:
  Unpacking(const std::string& path, std::unique_ptr<ByteStream> packed)
      : path_(path), packed_(std::move(packed)), input_(1 << 17) {}
  void stop() override { packed_->stop(); }

 protected:
  /// Some packed bytes; none only at the end.
  std::span<const uint8_t> more() { return std::span(input_).first(packed_->read(input_)); }
  [[noreturn]] void damaged(const char* kind, const char* why) const {
    fail<InputError>("{}: is damaged: no whole {} content ({}); copy it again", path_, kind, why);
  }

 private:
  std::string path_;
  std::unique_ptr<ByteStream> packed_;
  std::vector<uint8_t> input_;
};

class Gunzip final : public Unpacking {
 public:
  Gunzip(const std::string& path, std::unique_ptr<ByteStream> packed) : Unpacking(path, std::move(packed)) {
    if (inflateInit2(&stream_, 15 + 32) != Z_OK) damaged("gzip", "no memory");
  }
  ~Gunzip() override { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  size_t read(std::span<uint8_t> out) override {
    out = out.first(std::min<size_t>(out.size(), 1 << 30));  // zlib counts in 32 bits
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out == out.size() && !over_) {
      if (stream_.avail_in == 0 && !refill()) {
        if (!between_) damaged("gzip", "it ends early");
        over_ = true;
        break;
      }
      if (between_ && !begin_next()) break;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_STREAM_END)
        between_ = true;
      else if (status != Z_OK && status != Z_BUF_ERROR)
        damaged("gzip", stream_.msg ? stream_.msg : "bad data");
    }
    return out.size() - stream_.avail_out;
  }

 private:
  bool refill() {
    const auto some = more();
    stream_.next_in = const_cast<uint8_t*>(some.data());
    stream_.avail_in = static_cast<uInt>(some.size());
    return !some.empty();
  }
  /// Another gzip stream may follow; anything else is padding, as gzip itself takes it.
  bool begin_next() {
    if (*stream_.next_in != 0x1f) {
      over_ = true;
      return false;
    }
    inflateReset(&stream_);
    between_ = false;
    return true;
  }

  z_stream stream_{};
  bool between_ = false, over_ = false;
};

class Unzstd final : public Unpacking {
 public:
  Unzstd(const std::string& path, std::unique_ptr<ByteStream> packed)
      : Unpacking(path, std::move(packed)), stream_(ZSTD_createDStream(), &ZSTD_freeDStream) {
    if (!stream_) damaged("zstd", "no memory");
  }

  size_t read(std::span<uint8_t> out) override {
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    while (to.pos == 0) {
      if (from_.pos == from_.size && !full_) {
        const auto some = more();
        from_ = {some.data(), some.size(), 0};
        if (some.empty()) {
          if (left_ != 0) damaged("zstd", "it ends early");
          return 0;
        }
      }
      left_ = ZSTD_decompressStream(stream_.get(), &to, &from_);
      if (ZSTD_isError(left_)) damaged("zstd", ZSTD_getErrorName(left_));
      full_ = left_ != 0 && to.pos == to.size;  // then there may be more without more input
    }
    return to.pos;
  }

 private:
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream_;
  ZSTD_inBuffer from_{nullptr, 0, 0};
  size_t left_ = 0;
  bool full_ = false;
};

/// Looks at the first bytes when they are asked for, not before: a command may take its time.
class Unpacked final : public ByteStream {
 public:
  Unpacked(std::string path, std::unique_ptr<ByteStream> bytes)
      : path_(std::move(path)), raw_(*bytes), bytes_(std::move(bytes)) {}
  size_t read(std::span<uint8_t> out) override {
    begin();
    return bytes_->read(out);
  }
  bool seek(uint64_t offset) override {
    begin();
    return bytes_->seek(offset);
  }
  void stop() override { raw_.stop(); }

 private:
  void begin() {
    if (std::exchange(begun_, true)) return;
    std::vector<uint8_t> head(8);
    size_t size = 0;
    while (size < head.size()) {
      const size_t got = bytes_->read(std::span(head).subspan(size));
      if (got == 0) break;
      size += got;
    }
    head.resize(size);
    const Compression compression = compression_of(std::span<const uint8_t>(head));
    bytes_ = std::make_unique<Pushed>(std::move(head), std::move(bytes_));
    if (compression == Compression::gzip)
      bytes_ = std::make_unique<Gunzip>(path_, std::move(bytes_));
    else if (compression == Compression::zstd)
      bytes_ = std::make_unique<Unzstd>(path_, std::move(bytes_));
    else if (compression != Compression::none)
      fail<InputError>(
          "{}: streams are unpacked from gzip and zstd; for others let a command do it, as in pipe:xz -dc "
          "x.tar.xz",
          path_);
  }

  std::string path_;
  ByteStream& raw_;  // what bytes_ reads in the end
  std::unique_ptr<ByteStream> bytes_;
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> unpacked(const std::string& path, std::unique_ptr<ByteStream> bytes) {
  return std::make_unique<Unpacked>(path, std::move(bytes));
}

}  // namespace millrace::data
