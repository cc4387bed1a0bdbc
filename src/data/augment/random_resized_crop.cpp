// "random-resized-crop 224": a part of random area and proportions, resized to a square; torchvision's
// RandomResizedCrop. With (H, W) the picture's size, ten times: area = H·W·uniform(scale), ratio =
// exp(uniform(log r0, log r1)), the part is round(sqrt(area·ratio)) wide and round(sqrt(area/ratio)) high, at
// a uniform place, when it fits. When none does: the largest part in the middle whose proportions lie within
// `ratio`.
#include <algorithm>
#include <cmath>

#include "base/word_settings.h"
#include "data/augment/augment.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/resize.h"

namespace millrace::data {
namespace {

class RandomResizedCrop final : public Augmentation {
 public:
  RandomResizedCrop(int size, std::pair<double, double> scale, std::pair<double, double> ratio)
      : size_(size), scale_(scale), ratio_(ratio) {}

  bool frames() const override { return true; }
  Extent result(const Extent& extent) const override { return {extent.channels, size_, size_}; }

  Frame frame(int height, int width, Draw& draw) const override {
    return {part(height, width, draw), size_, size_, {0, 0, size_, size_}};
  }

  void apply(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) const override {
    thread_local Resampler resampler;
    thread_local std::vector<uint8_t> plane;
    resampler.plan(frame(extent.height, extent.width, draw));
    const Box& box = resampler.needed();
    plane.resize(extent.plane() + Resampler::slack);
    for (int c = 0; c < extent.channels; ++c) {
      std::copy_n(in + c * extent.plane(), extent.plane(), plane.begin());
      resampler.to_planes(plane.data() + static_cast<size_t>(box.top) * extent.width + box.left, extent.width,
                          1, out + static_cast<size_t>(c) * size_ * size_);
    }
  }

 private:
  Box part(int height, int width, Draw& draw) const {
    const double area = static_cast<double>(height) * width, low = std::log(ratio_.first),
                 high = std::log(ratio_.second);
    const auto between = [&](double a, double b) { return a + (b - a) * draw.random.uniform(); };
    const auto rounded = [](double value) { return static_cast<int>(std::nearbyint(std::min(value, 1e9))); };
    for (int i = 0; i < 10; ++i) {
      const double wanted = area * between(scale_.first, scale_.second), ratio = std::exp(between(low, high));
      const int w = rounded(std::sqrt(wanted * ratio)), h = rounded(std::sqrt(wanted / ratio));
      if (w < 1 || h < 1 || w > width || h > height) continue;
      const int top = static_cast<int>(draw.random.below(static_cast<uint32_t>(height - h + 1)));
      const int left = static_cast<int>(draw.random.below(static_cast<uint32_t>(width - w + 1)));
      return {top, left, h, w};
    }
    const double own = static_cast<double>(width) / height;
    int w = width, h = height;
    if (own < ratio_.first)
      h = std::clamp(rounded(w / ratio_.first), 1, height);
    else if (own > ratio_.second)
      w = std::clamp(rounded(h * ratio_.second), 1, width);
    return {(height - h) / 2, (width - w) / 2, h, w};
  }

  int size_;
  std::pair<double, double> scale_, ratio_;
};

}  // namespace

MILLRACE_AUGMENTATION(random_resized_crop){
    .name = "random-resized-crop",
    .doc = "a part of random area and proportions, resized to SIZE×SIZE",
    .place = 70,
    .settings = {{"SIZE", "of the sides, in pixels", int64_t{224}, 1, 4096},
                 {"scale", "share of the area", std::vector{0.08, 1.0}, 1e-6, 1},
                 {"ratio", "width to height", std::vector{3.0 / 4, 4.0 / 3}, 0.01, 100}},
    .make = [](const Settings& s) -> std::unique_ptr<Augmentation> {
      return std::make_unique<RandomResizedCrop>(static_cast<int>(s.integer("SIZE")), range_of(s, "scale"),
                                                 range_of(s, "ratio"));
    }};

}  // namespace millrace::data
