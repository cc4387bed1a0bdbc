// Samples of a batch mixed with each other; their labels become shares of two.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/augment/augment.h"

namespace millrace::data {

/// mixup and cutmix, as torchvision's MixUp and CutMix: each sample is mixed with the one before it in the
/// batch (the first with the last), all in the same share. Of several in a list, each batch draws one.
class Mixer {
 public:
  /// "mixup 0.2", "cutmix 1": the number is ALPHA of the distribution Beta(ALPHA, ALPHA) of shares.
  /// InputError names what is wrong.
  explicit Mixer(std::span<const std::string> texts);
  bool empty() const { return kinds_.empty(); }

  /// Mixes `count` pictures of a batch (planes, one after the other) in place; returns the share that each
  /// keeps of itself. `batch` names the batch: seed, epoch and position of its first sample. `scratch` is
  /// working memory.
  float apply(const Extent& extent, uint8_t* pictures, int64_t count, const SampleKey& batch,
              std::vector<uint8_t>& scratch) const;

 private:
  struct Kind {
    bool cut;
    double alpha;
  };
  std::vector<Kind> kinds_;
};

}  // namespace millrace::data
