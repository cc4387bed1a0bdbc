#include "data/codecs/pictures/picture_reader.h"

#include <cstring>
#include <utility>

#include "backend/cpu/kernels/resize/loops.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/exif.h"
#include "data/codecs/pictures/stored_picture.h"

namespace millrace::data {
namespace {

/// How much smaller the part can be decoded and still be at least as large as the frame wants it.
int reduction_for(const Frame& frame) {
  int reduction = 1;
  while (reduction < 8 && frame.part.height >= 2 * reduction * frame.height &&
         frame.part.width >= 2 * reduction * frame.width)
    reduction *= 2;
  return reduction;
}

/// A side of a picture that is decoded `reduction` times smaller.
int reduced(int side, int reduction) { return (side + reduction - 1) / reduction; }

/// The frame of a reduced picture. Where a side is mirrored, it begins with the pixel that ended it, of which
/// a part lies outside of the picture.
Frame reduced_frame(Frame frame, int reduction, int height, int width, Orientation orientation) {
  bool down = orientation.rows_mirrored(), across = orientation.columns_mirrored();
  if (orientation.swaps()) std::swap(down, across);
  if (down) frame.part.top += reduced(height, reduction) * reduction - height;
  if (across) frame.part.left += reduced(width, reduction) * reduction - width;
  return frame;
}

}  // namespace

std::string PictureReader::open(const StoredPicture& sample) {
  is_jpeg_ =
      sample.height == 0 && sample.bytes.size() > 2 && sample.bytes[0] == 0xff && sample.bytes[1] == 0xd8;
  if (is_jpeg_) {
    if (std::string why = jpeg_.open(sample.bytes); !why.empty()) return why;
    height_ = jpeg_.height();
    width_ = jpeg_.width();
    channels_ = jpeg_.channels();
    orientation_ = {exif_orientation(sample.bytes)};
    if (orientation_.swaps()) std::swap(height_, width_);
    return {};
  }
  if (std::string why = decode_picture(sample, whole_); !why.empty()) return why;
  whole_.pixels.resize(whole_.pixels.size() + Resampler::slack);
  height_ = whole_.height;
  width_ = whole_.width;
  channels_ = whole_.channels;
  return {};
}

std::string PictureReader::decode(const Box& part, int reduction, int channels, View& view) {
  if (is_jpeg_) {
    const int own = channels_ == 1 ? channels : channels_;
    const Box box =
        orientation_.stored(part, reduced(jpeg_.height(), reduction), reduced(jpeg_.width(), reduction));
    if (std::string why = jpeg_.read(box, reduction, own); !why.empty()) return why;
    view = {jpeg_.pixels(), jpeg_.stride(), own};
    if (!orientation_.upright()) turn(box, view);
  } else {
    const int64_t stride = int64_t{width_} * channels_;
    view = {whole_.pixels.data() + part.top * stride + int64_t{part.left} * channels_, stride, channels_};
  }
  if (view.channels != channels) convert(part, channels, view);
  return {};
}

void PictureReader::turn(const Box& stored, View& view) {
  const auto width = static_cast<size_t>(orientation_.swaps() ? stored.height : stored.width);
  const size_t line = width * static_cast<size_t>(view.channels);
  turned_.resize(line * static_cast<size_t>(orientation_.swaps() ? stored.width : stored.height) +
                 Resampler::slack);
  orientation_.turn(view.pixels, view.stride, stored.height, stored.width, view.channels, turned_.data());
  view = {turned_.data(), static_cast<int64_t>(line), view.channels};
}

/// Colour to grey or grey to colour, as with_channels().
void PictureReader::convert(const Box& part, int channels, View& view) {
  const size_t line = static_cast<size_t>(part.width) * static_cast<size_t>(channels);
  converted_.resize(line * static_cast<size_t>(part.height) + Resampler::slack);
  for (int y = 0; y < part.height; ++y)
    convert_channels(view.pixels + y * view.stride, part.width, view.channels, channels,
                     converted_.data() + line * static_cast<size_t>(y));
  view = {converted_.data(), static_cast<int64_t>(line), channels};
}

std::string PictureReader::load(const Frame& frame, int channels, bool reduce, uint8_t* planes) {
  View view{};
  if (!frame.nothing(height_, width_)) {
    const int reduction = reduce && is_jpeg_ ? reduction_for(frame) : 1;
    resampler_.plan(reduction == 1 ? frame : reduced_frame(frame, reduction, height_, width_, orientation_),
                    reduction);
    if (std::string why = decode(resampler_.needed(), reduction, channels, view); !why.empty()) return why;
    resampler_.to_planes(view.pixels, view.stride, channels, planes);
    return {};
  }
  const int height = height_, width = width_;
  if (std::string why = decode({0, 0, height, width}, 1, channels, view); !why.empty()) return why;
  const int64_t plane = int64_t{height} * width;
  const bool dense = view.stride == int64_t{width} * channels;  // then all of it is a row
  const int64_t rows = dense ? 1 : height, size = dense ? plane : width;
  for (int64_t y = 0; y < rows; ++y, planes += size) {
    const uint8_t* row = view.pixels + y * view.stride;
    if (channels == 3)
      cpu::resize_loops().apart(row, size, planes, planes + plane, planes + 2 * plane);
    else
      std::memcpy(planes, row, static_cast<size_t>(size));
  }
  return {};
}

}  // namespace millrace::data
