#include "data/augment/spec_augment.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/format.h"
#include "base/number_from.h"

namespace millrace::data {
namespace {

struct Stretch {
  int64_t first = 0, size = 0;
};

Stretch draw_stretch(int64_t most, int64_t of, RandomStream& random) {
  Stretch s;
  s.size = random.below(static_cast<uint32_t>(std::clamp<int64_t>(most, 0, of)) + 1);
  s.first = random.below(static_cast<uint32_t>(of - s.size) + 1);
  return s;
}

}  // namespace

SpecAugment SpecAugment::parse(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string name, word;
  words >> name;
  const auto refuse = [&] {
    fail<InputError>(
        "\"{}\": write it as \"spec-augment [MASKS MELS [MASKS FRAMES [SHARE]]]\", as in \"spec-augment 2 15 "
        "2 25 0.2\"",
        text);
  };
  if (name != "spec-augment") refuse();
  SpecAugment s;
  int* const numbers[] = {&s.frequency_masks, &s.most_mels, &s.time_masks, &s.most_frames};
  size_t count = 0;
  for (; words >> word; ++count) {
    if (count < 4) {
      *numbers[count] = number_from<int>(word).value_or(-1);
      if (*numbers[count] < 0 || *numbers[count] > 10'000) refuse();
    } else {
      s.most_share = number_from<double>(word).value_or(-1);
      if (count > 4 || !(s.most_share >= 0 && s.most_share <= 1)) refuse();
    }
  }
  if (count == 1 || count == 3) refuse();
  return s;
}

void SpecAugment::draw(int64_t mels, int64_t frames, RandomStream& random, std::span<float> mel_mask,
                       std::span<float> frame_mask) const {
  std::fill(mel_mask.begin(), mel_mask.end(), 1.0F);
  std::fill(frame_mask.begin(), frame_mask.end(), 1.0F);
  for (int i = 0; i < frequency_masks; ++i) {
    const Stretch s = draw_stretch(most_mels, mels, random);
    std::fill_n(mel_mask.begin() + s.first, s.size, 0.0F);
  }
  const auto share = static_cast<int64_t>(std::floor(most_share * static_cast<double>(frames)));
  for (int i = 0; i < time_masks; ++i) {
    const Stretch s = draw_stretch(std::min<int64_t>(most_frames, share), frames, random);
    std::fill_n(frame_mask.begin() + s.first, s.size, 0.0F);
  }
}

}  // namespace millrace::data
