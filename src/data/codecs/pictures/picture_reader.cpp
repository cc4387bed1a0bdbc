#include "data/codecs/pictures/picture_reader.h"

#include <cstring>

#include "backend/cpu/kernels/resize/loops.h"
#include "data/codecs/pictures/decode.h"
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

}  // namespace

std::string PictureReader::open(const StoredPicture& sample) {
  is_jpeg_ =
      sample.height == 0 && sample.bytes.size() > 2 && sample.bytes[0] == 0xff && sample.bytes[1] == 0xd8;
  if (is_jpeg_) {
    if (std::string why = jpeg_.open(sample.bytes); !why.empty()) return why;
    height_ = jpeg_.height();
    width_ = jpeg_.width();
    channels_ = jpeg_.channels();
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
    if (std::string why = jpeg_.read(part, reduction, own); !why.empty()) return why;
    view = {jpeg_.pixels(), jpeg_.stride(), own};
  } else {
    const int64_t stride = int64_t{width_} * channels_;
    view = {whole_.pixels.data() + part.top * stride + int64_t{part.left} * channels_, stride, channels_};
  }
  if (view.channels != channels) convert(part, channels, view);
  return {};
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
    resampler_.plan(frame, reduction);
    if (std::string why = decode(resampler_.needed(), reduction, channels, view); !why.empty()) return why;
    resampler_.to_planes(view.pixels, view.stride, channels, planes);
    return {};
  }
  const int height = height_, width = width_;
  if (std::string why = decode({0, 0, height, width}, 1, channels, view); !why.empty()) return why;
  const int64_t plane = int64_t{height} * width;
  if (view.stride == int64_t{width} * channels) {
    if (channels == 3)
      cpu::resize_loops().apart(view.pixels, plane, planes, planes + plane, planes + 2 * plane);
    else
      std::memcpy(planes, view.pixels, static_cast<size_t>(plane));
    return {};
  }
  for (int y = 0; y < height; ++y, planes += width) {
    const uint8_t* row = view.pixels + y * view.stride;
    if (channels == 3)
      cpu::resize_loops().apart(row, width, planes, planes + plane, planes + 2 * plane);
    else
      std::memcpy(planes, row, static_cast<size_t>(width));
  }
  return {};
}

}  // namespace millrace::data
