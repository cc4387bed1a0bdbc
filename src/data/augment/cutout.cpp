// "cutout 8": hides a square of that side, its centre anywhere in the picture, under the picture's mean
// colour (DeVries and Taylor, arXiv 1708.04552).
#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "data/augment/changes.h"

namespace millrace::data {
namespace {

std::unique_ptr<Augmentation> make_cutout(const Settings& s) {
  return change_by([side = static_cast<int>(s.integer("PIXELS"))](const Extent& extent, const uint8_t* in,
                                                                  uint8_t* out, Draw& draw) {
    std::memcpy(out, in, extent.bytes());
    const int top = static_cast<int>(draw.random.below(static_cast<uint32_t>(extent.height))) - side / 2;
    const int left = static_cast<int>(draw.random.below(static_cast<uint32_t>(extent.width))) - side / 2;
    const int x0 = std::max(left, 0), x1 = std::min(left + side, extent.width);
    const int y0 = std::max(top, 0), y1 = std::min(top + side, extent.height);
    for (int c = 0; c < extent.channels; ++c) {
      const uint8_t* plane = in + c * extent.plane();
      uint64_t sum = extent.plane() / 2;
      for (size_t i = 0; i < extent.plane(); ++i) sum += plane[i];
      const auto mean = static_cast<uint8_t>(sum / extent.plane());
      for (int y = y0; y < y1; ++y)
        std::fill_n(out + c * extent.plane() + static_cast<size_t>(y) * extent.width + x0,
                    std::max(x1 - x0, 0), mean);
    }
  });
}

}  // namespace

MILLRACE_AUGMENTATION(cutout){.name = "cutout",
                              .doc = "a square under the mean colour",
                              .place = 60,
                              .settings = {{"PIXELS", "of its side", int64_t{8}, 1, 4096}},
                              .make = make_cutout};

}  // namespace millrace::data
