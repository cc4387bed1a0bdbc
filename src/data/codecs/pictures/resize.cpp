#include "data/codecs/pictures/resize.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "data/codecs/pictures/picture.h"

namespace millrace::data {
void Resampler::plan(const Frame& frame, int reduction) {
  if (frame == frame_ && reduction == reduction_) return;
  frame_ = frame;
  reduction_ = reduction;
  const Box& part = frame.part;
  // The part's pixels of the reduced picture; edges may go through the middle of one.
  const auto around = [&](int from, int size, int& at, int& length) {
    at = from / reduction;
    length = (from + size + reduction - 1) / reduction - at;
  };
  Box box;
  around(part.top, part.height, box.top, box.height);
  around(part.left, part.width, box.left, box.width);
  const double exact = reduction;
  across_.make(box.width, part.left / exact - box.left, (part.left + part.width) / exact - box.left,
               frame.width, frame.keep.left, frame.keep.width);
  down_.make(box.height, part.top / exact - box.top, (part.top + part.height) / exact - box.top, frame.height,
             frame.keep.top, frame.keep.height);
  const auto narrow = [](cpu::ResizeTable& table, int& at, int& length) {
    const int from = table.first.front(), to = table.first.back() + table.count.back();
    for (int& first : table.first) first -= from;
    at += from;
    length = to - from;
  };
  narrow(across_, box.left, box.width);
  narrow(down_, box.top, box.height);
  needed_ = box;
}

/// All rows across, or nothing when their width stays.
const uint8_t* Resampler::across_all(const uint8_t* pixels, int64_t& stride, int channels) {
  if (across_.same) return pixels;
  const cpu::ResizeLoops& loops = cpu::resize_loops();
  const int width = frame_.keep.width;
  const int64_t line = int64_t{width} * channels;
  if (rows_.size() < static_cast<size_t>(line * needed_.height) + slack)
    rows_.resize(static_cast<size_t>(line * needed_.height) + slack);
  for (int y = 0; y < needed_.height; ++y)
    loops.across(pixels + y * stride, channels, across_.first.data(), across_.count.data(),
                 across_.weights.data(), across_.width, width, rows_.data() + y * line);
  stride = line;
  return rows_.data();
}

void Resampler::run(const uint8_t* pixels, int64_t stride, int channels, uint8_t* planes, uint8_t* out) {
  const cpu::ResizeLoops& loops = cpu::resize_loops();
  const uint8_t* rows = across_all(pixels, stride, channels);
  const int height = frame_.keep.height, width = frame_.keep.width;
  const int64_t line = int64_t{width} * channels, plane = int64_t{width} * height;
  line_.resize(static_cast<size_t>(line) + slack);
  for (int y = 0; y < height; ++y) {
    const uint8_t* row = rows + down_.first[y] * stride;
    if (!down_.same) {
      uint8_t* const to = planes ? line_.data() : out + y * line;
      loops.down(row, stride, &down_.weights[static_cast<size_t>(y) * down_.width], down_.count[y], line, to);
      row = to;
    } else if (!planes) {
      std::memcpy(out + y * line, row, static_cast<size_t>(line));
    }
    if (!planes) continue;
    uint8_t* const to = planes + int64_t{y} * width;
    if (channels == 3)
      loops.apart(row, width, to, to + plane, to + 2 * plane);
    else
      std::memcpy(to, row, static_cast<size_t>(line));
  }
}

void Resampler::to_planes(const uint8_t* pixels, int64_t stride, int channels, uint8_t* planes) {
  run(pixels, stride, channels, planes, nullptr);
}

void Resampler::to_pixels(const uint8_t* pixels, int64_t stride, int channels, uint8_t* out) {
  run(pixels, stride, channels, nullptr, out);
}

Picture resize(const Picture& picture, int height, int width) {
  if (height < 1 || width < 1 || height > 65535 || width > 65535)
    fail<InputError>("a picture cannot be resized to {}x{}; sizes go from 1 to 65535", width, height);
  Resampler resampler;
  resampler.plan(whole_frame(picture.height, picture.width, height, width));
  std::vector<uint8_t> pixels = picture.pixels;
  pixels.resize(pixels.size() + Resampler::slack);
  const int64_t stride = int64_t{picture.width} * picture.channels;
  const Box& box = resampler.needed();
  Picture out{height, width, picture.channels, {}};
  out.pixels.resize(static_cast<size_t>(height) * width * picture.channels + Resampler::slack);
  resampler.to_pixels(pixels.data() + box.top * stride + int64_t{box.left} * picture.channels, stride,
                      picture.channels, out.pixels.data());
  out.pixels.resize(out.pixels.size() - Resampler::slack);
  return out;
}

}  // namespace millrace::data
