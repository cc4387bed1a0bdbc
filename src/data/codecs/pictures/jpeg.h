// JPEG, with libjpeg-turbo.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/picture.h"

namespace millrace::data {

/// Decodes grey and colour (YCbCr, RGB, CMYK, YCCK) files into `picture`, whose memory is reused, as they are
/// stored, whatever their EXIF says. Inks become RGB; they are taken to be inverted, as Adobe's programs
/// write them and all viewers read them. Returns "" or the reason why it cannot: no JPEG, truncated, damaged,
/// too large.
[[nodiscard]] std::string decode_jpeg(std::span<const uint8_t> bytes, Picture& picture);

/// Reads parts of JPEG files. Keeps its memory: one for each thread.
class JpegReader {
 public:
  JpegReader();
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  /// Reads the header; `bytes` must stay until the next open(). Returns "" or the reason why it cannot, as
  /// decode_jpeg().
  [[nodiscard]] std::string open(std::span<const uint8_t> bytes);
  int height() const { return height_; }
  int width() const { return width_; }
  /// 1 grey, 3 colour.
  int channels() const { return channels_; }

  /// Decodes the pixels of `part`, which are those of a whole decode bit for bit; once after each open().
  /// With `reduction` 2, 4 or 8 the picture is decoded that many times smaller (sides rounded up; a little
  /// different from decoding and then shrinking), and `part` is a part of that. Grey files can be read with 3
  /// channels, colour ones only so. What lies behind the part is not read, except for the file's end.
  [[nodiscard]] std::string read(const Box& part, int reduction, int channels);
  /// What was read last: the part's first pixel, rows stride() bytes apart, 64 readable bytes behind the last
  /// one.
  const uint8_t* pixels() const { return pixels_; }
  int64_t stride() const { return stride_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  int height_ = 0, width_ = 0, channels_ = 0;
  bool inks_ = false;  // CMYK, YCCK
  const uint8_t* pixels_ = nullptr;
  int64_t stride_ = 0;
};

/// Encodes with the accurate integer DCT; `quality` 1 to 100. InputError for an empty picture or other
/// channel counts than 1 and 3.
std::vector<uint8_t> encode_jpeg(const Picture& picture, int quality);

}  // namespace millrace::data
