#include "data/tools/contact_sheet.h"

#include <algorithm>

#include "data/codecs/pictures/extent.h"

namespace millrace::data {
namespace {

constexpr int gap = 2, least_side = 32;

}  // namespace

Picture picture_of(const Batch& batch, const Extent& extent, int64_t index) {
  Picture picture{extent.height, extent.width, extent.channels, std::vector<uint8_t>(extent.bytes())};
  const uint8_t* planes = &batch.pictures[static_cast<size_t>(index) * extent.bytes()];
  for (size_t c = 0; c < static_cast<size_t>(extent.channels); ++c)
    for (size_t i = 0; i < extent.plane(); ++i)
      picture.pixels[i * static_cast<size_t>(extent.channels) + c] = planes[c * extent.plane() + i];
  return picture;
}

Picture contact_sheet(const Batch& batch, const Extent& extent, int64_t count, int columns) {
  const int scale = std::max(1, (least_side + extent.height - 1) / extent.height);
  const int height = extent.height * scale, width = extent.width * scale,
            across = static_cast<int>(std::min<int64_t>(columns, count)),
            down = static_cast<int>((count + columns - 1) / columns);
  Picture sheet{down * (height + gap) - gap, across * (width + gap) - gap, extent.channels, {}};
  const auto channels = static_cast<size_t>(extent.channels);
  sheet.pixels.assign(static_cast<size_t>(sheet.height) * static_cast<size_t>(sheet.width) * channels, 255);
  for (int64_t i = 0; i < count; ++i) {
    const Picture one = picture_of(batch, extent, i);
    const int top = static_cast<int>(i / columns) * (height + gap),
              left = static_cast<int>(i % columns) * (width + gap);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        std::copy_n(&one.pixels[static_cast<size_t>(y / scale * one.width + x / scale) * channels], channels,
                    &sheet.pixels[static_cast<size_t>((top + y) * sheet.width + left + x) * channels]);
  }
  return sheet;
}

}  // namespace millrace::data
