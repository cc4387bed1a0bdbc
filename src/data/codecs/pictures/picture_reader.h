// Pictures of any format, of which only a part is wanted.
#pragma once

#include <string>
#include <vector>

#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/jpeg.h"
#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/resize.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/codecs/pictures/turn.h"

namespace millrace::data {

/// Decodes samples, as much of them as a frame needs, turned upright as their EXIF says: sizes and frames are
/// those of the upright picture. Keeps its memory: one for each thread.
class PictureReader {
 public:
  /// Looks at a sample, which must stay until load() is done: JPEG files are opened, all others decoded.
  /// Returns "" or the reason why it is no good picture.
  [[nodiscard]] std::string open(const StoredPicture& sample);
  int height() const { return height_; }
  int width() const { return width_; }
  /// 1 grey, 3 colour.
  int channels() const { return channels_; }

  /// Writes the frame of the sample that was opened as planes (CHW) of `channels`; once after each open().
  /// `reduce`: where the part is at least twice as large as the frame, JPEG files may be decoded at 1/2, 1/4
  /// or 1/8, which is faster and changes pixels a little. Returns "" or the reason why it cannot.
  [[nodiscard]] std::string load(const Frame& frame, int channels, bool reduce, uint8_t* planes);

 private:
  struct View {
    const uint8_t* pixels;
    int64_t stride;
    int channels;
  };
  [[nodiscard]] std::string decode(const Box& part, int reduction, int channels, View& view);
  void turn(const Box& stored, View& view);
  void convert(const Box& part, int channels, View& view);

  int height_ = 0, width_ = 0, channels_ = 0;
  bool is_jpeg_ = false;
  Orientation orientation_;  // of a JPEG file; all else is upright when it is decoded
  JpegReader jpeg_;
  Picture whole_;
  Resampler resampler_;
  std::vector<uint8_t> turned_, converted_;
};

}  // namespace millrace::data
