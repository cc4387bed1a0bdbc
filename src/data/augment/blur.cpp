// "blur 5": Gaussian blur of random strength; torchvision's GaussianBlur.
#include "data/augment/blur.h"

#include <cmath>

#include "base/format.h"
#include "base/word_settings.h"
#include "data/augment/changes.h"

namespace millrace::data {
namespace {

std::unique_ptr<Augmentation> make_blur(const Settings& s) {
  const auto size = static_cast<int>(s.integer("SIZE"));
  if (size % 2 == 0) fail<InputError>("SIZE must be odd: so many pixels each way, and the one in the middle");
  return change_sometimes(
      s.number("p"),
      [size, sigma = range_of(s, "sigma")](const Extent& extent, uint8_t* planes, Draw& draw) {
        gaussian_blur(extent, planes, size, between(draw, sigma));
      },
      [size](const Extent& extent) {
        if (size / 2 >= extent.height || size / 2 >= extent.width)
          fail<InputError>(
              "augmentation \"blur {}\": pictures of {}x{} are too small for it; use a smaller number", size,
              extent.width, extent.height);
      });
}

int reflected(int i, int size) { return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i; }

}  // namespace

void gaussian_blur(const Extent& extent, uint8_t* planes, int size, double sigma) {
  const int half = size / 2, height = extent.height, width = extent.width;
  std::vector<float> weights(static_cast<size_t>(size)), rows(extent.plane()), line;
  double sum = 0;
  for (int i = -half; i <= half; ++i) sum += std::exp(-0.5 * (i / sigma) * (i / sigma));
  for (int i = -half; i <= half; ++i)
    weights[static_cast<size_t>(i + half)] =
        static_cast<float>(std::exp(-0.5 * (i / sigma) * (i / sigma)) / sum);
  for (int c = 0; c < extent.channels; ++c, planes += extent.plane()) {
    line.resize(static_cast<size_t>(width) + 2 * static_cast<size_t>(half));
    for (int y = 0; y < height; ++y) {
      const uint8_t* from = planes + static_cast<size_t>(y) * width;
      float* to = &rows[static_cast<size_t>(y) * width];
      for (int x = -half; x < width + half; ++x)
        line[static_cast<size_t>(x + half)] = from[reflected(x, width)];
      for (int x = 0; x < width; ++x) {
        float value = 0;
        for (int k = 0; k < size; ++k) value += weights[k] * line[static_cast<size_t>(x + k)];
        to[x] = value;
      }
    }
    line.resize(static_cast<size_t>(width));
    for (int y = 0; y < height; ++y) {
      std::fill(line.begin(), line.end(), 0.5F);  // to be rounded
      for (int k = 0; k < size; ++k) {
        const float* from = &rows[static_cast<size_t>(reflected(y + k - half, height)) * width];
        for (int x = 0; x < width; ++x) line[x] += weights[k] * from[x];
      }
      uint8_t* to = planes + static_cast<size_t>(y) * width;
      for (int x = 0; x < width; ++x) to[x] = static_cast<uint8_t>(std::min(line[x], 255.0F));
    }
  }
}

MILLRACE_AUGMENTATION(blur){.name = "blur",
                            .doc = "Gaussian blur of random strength",
                            .place = 120,
                            .settings = {{"SIZE", "of the kernel, in pixels: odd", int64_t{1}, 1, 101},
                                         {"sigma", "deviation, in pixels", std::vector{0.1, 2.0}, 0.01, 100},
                                         p_setting(1)},
                            .make = make_blur};

}  // namespace millrace::data
