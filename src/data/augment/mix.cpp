#include "data/augment/mix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "base/suggest.h"
#include "base/word_settings.h"
#include "data/codecs/pictures/frame.h"

namespace millrace::data {
namespace {

constexpr double pi = 3.14159265358979323846;

double normal(RandomStream& random) {
  const double size = std::sqrt(-2 * std::log(1 - static_cast<double>(random.uniform())));
  return size * std::cos(2 * pi * random.uniform());
}

/// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000: the logarithm, as small
/// shapes give numbers that are too small for a double.
double log_gamma_draw(double shape, RandomStream& random) {
  const double boost = shape < 1 ? std::log(1 - static_cast<double>(random.uniform())) / shape : 0;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal(random), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root, u = 1 - static_cast<double>(random.uniform());
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v) + boost;
  }
}

double beta_draw(double alpha, RandomStream& random) {
  const double a = log_gamma_draw(alpha, random), b = log_gamma_draw(alpha, random);
  return 1 / (1 + std::exp(b - a));
}

/// The box that cutmix takes from the other picture, about a random place: its share is 1 - `kept` where it
/// fits.
Box cut_box(const Extent& extent, double kept, RandomStream& random) {
  const int x = static_cast<int>(random.below(static_cast<uint32_t>(extent.width))),
            y = static_cast<int>(random.below(static_cast<uint32_t>(extent.height)));
  const double half = 0.5 * std::sqrt(1 - kept);
  const int across = static_cast<int>(half * extent.width), down = static_cast<int>(half * extent.height);
  const int left = std::max(x - across, 0), top = std::max(y - down, 0);
  return {top, left, std::min(y + down, extent.height) - top, std::min(x + across, extent.width) - left};
}

void blend(uint8_t* to, const uint8_t* other, size_t count, float kept) {
  for (size_t i = 0; i < count; ++i)
    to[i] = static_cast<uint8_t>(kept * static_cast<float>(to[i]) +
                                 (1 - kept) * static_cast<float>(other[i]) + 0.5F);
}

void paste(const Extent& extent, uint8_t* to, const uint8_t* other, const Box& box) {
  for (int c = 0; c < extent.channels; ++c)
    for (int y = box.top; y < box.top + box.height; ++y) {
      const size_t at =
          c * extent.plane() + static_cast<size_t>(y) * extent.width + static_cast<size_t>(box.left);
      std::memcpy(to + at, other + at, static_cast<size_t>(box.width));
    }
}

}  // namespace

Mixer::Mixer(std::span<const std::string> texts) {
  for (const std::string& text : texts) {
    const std::string name = text.substr(0, text.find(' '));
    if (name != "mixup" && name != "cutmix")
      fail<InputError>("\"{}\" is unknown{} There are: mixup ALPHA, cutmix ALPHA", text,
                       did_you_mean(name, std::vector<std::string>{"mixup", "cutmix"}, ".", '"'));
    const Settings settings =
        parse_words("augmentation", text, {{"ALPHA", "of the distribution of shares", 1.0, 0.01, 100}});
    kinds_.push_back({name == "cutmix", settings.number("ALPHA")});
  }
}

float Mixer::apply(const Extent& extent, uint8_t* pictures, int64_t count, const SampleKey& batch,
                   std::vector<uint8_t>& scratch) const {
  if (empty() || count < 2) return 1;
  // A stream of its own, beside those of the augmentations.
  RandomStream random(batch.seed, uint64_t{0x6d6978} << 32 | static_cast<uint32_t>(batch.epoch),
                      static_cast<uint64_t>(batch.position));
  const Kind& kind = kinds_[random.below(static_cast<uint32_t>(kinds_.size()))];
  double kept = beta_draw(kind.alpha, random);
  Box box;
  if (kind.cut) {
    box = cut_box(extent, kept, random);
    kept = 1 - static_cast<double>(box.height) * box.width / static_cast<double>(extent.plane());
  }
  const size_t size = extent.bytes();
  const auto at = [&](int64_t i) { return pictures + static_cast<size_t>(i) * size; };
  // Backwards, so that the sample mixed in is still unchanged; the first one is kept aside.
  scratch.assign(at(count - 1), at(count - 1) + size);
  for (int64_t i = count - 1; i >= 0; --i) {
    const uint8_t* other = i > 0 ? at(i - 1) : scratch.data();
    if (kind.cut)
      paste(extent, at(i), other, box);
    else
      blend(at(i), other, size, static_cast<float>(kept));
  }
  return static_cast<float>(kept);
}

}  // namespace millrace::data
