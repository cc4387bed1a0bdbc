#include "task/inputs/picture_views.h"

#include <algorithm>

namespace millrace::task {
namespace {

/// The pictures mirrored left to right.
Array flipped(const Array& pictures) {
  Array result(pictures.type());
  const int64_t width = pictures.shape().back().size(), rows = width ? pictures.count() / width : 0;
  const auto from = pictures.as<uint8_t>();
  auto to = result.as<uint8_t>();
  for (int64_t row = 0; row < rows; ++row)
    std::reverse_copy(from.begin() + row * width, from.begin() + (row + 1) * width, to.begin() + row * width);
  return result;
}

/// The pictures moved by `step` (±1) in both directions, the border filled by reflection.
Array shifted(const Array& pictures, int64_t step) {
  Array result(pictures.type());
  const auto sizes = pictures.shape().sizes();
  const int64_t height = sizes[2], width = sizes[3];
  const auto reflect = [](int64_t at, int64_t size) {
    return size == 1 ? 0 : at < 0 ? -at : at >= size ? 2 * size - 2 - at : at;
  };
  const auto from = pictures.as<uint8_t>();
  auto to = result.as<uint8_t>();
  for (int64_t plane = 0; plane < sizes[0] * sizes[1]; ++plane)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x)
        to[(plane * height + y) * width + x] =
            from[(plane * height + reflect(y + step, height)) * width + reflect(x + step, width)];
  return result;
}

}  // namespace

int picture_views(const std::string& tta) { return tta == "shift" ? 6 : tta == "flip" ? 2 : 1; }

Array picture_view(const Array& pictures, int view) {
  // Pairs of a picture and its mirror image: as it is, shifted one way, shifted the other.
  const Array moved = view < 2 ? pictures : shifted(pictures, view < 4 ? -1 : 1);
  return view % 2 == 0 ? moved : flipped(moved);
}

float picture_view_weight(int view) { return view < 2 ? 1.0F : 0.5F; }

}  // namespace millrace::task
