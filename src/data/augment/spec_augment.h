// SpecAugment without its time warp (Park et al., arXiv 1904.08779; "large datasets" arXiv 1912.05533 for the
// share): stretches of mels and of time are masked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <millrace/random.h>

namespace millrace::data {

struct SpecAugment {
  int frequency_masks = 2, most_mels = 15;  // F
  int time_masks = 2, most_frames = 25;     // T
  double most_share = 0.2;                  // p: of the frames, in one mask of time

  /// "spec-augment 2 15 2 25 0.2"; the words in this order, all but the first may be left out. InputError
  /// when they are none.
  static SpecAugment parse(std::string_view text);

  /// Draws masks of a spectrogram [mels, frames]: 1 where a mel or a frame is kept, 0 where it is masked. The
  /// width of each mask is uniform from 0 to its most, its place uniform among those where it fits.
  void draw(int64_t mels, int64_t frames, RandomStream& random, std::span<float> mel_mask,
            std::span<float> frame_mask) const;
};

}  // namespace millrace::data
