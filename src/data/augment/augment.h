// Random changes to training pictures: each is a file here with MILLRACE_AUGMENTATION(name){…}; and lists of
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/augment.h>

#include "base/registry.h"
#include "data/augment/pass.h"
#include "data/augment/sample_key.h"
#include "data/codecs/pictures/frame.h"

namespace millrace::data {

#define MILLRACE_AUGMENTATION(NAME)                  \
  extern const AugmentationKind augmentation_##NAME; \
  const AugmentationKind augmentation_##NAME

Registry<AugmentationKind>& augmentations();

/// Parses a recipe's text, e.g. "pad-crop 2", "flip", "alternating-flip", "random-shift 2", "rotate 15",
/// "cutout 8", "colour-jitter brightness=0.4". InputError names the nearest valid augmentation, or what its
/// parameters are.
std::unique_ptr<Augmentation> parse_augmentation(std::string_view text);

/// "pad-crop PIXELS [zero]", of all.
std::vector<std::string> augmentation_usages();

/// A list of augmentations, applied one after the other.
class Augmenter {
 public:
  explicit Augmenter(std::span<const std::string> texts);
  /// InputError when one of them cannot change pictures of this size, or of what those before it make of
  /// them.
  void check(const Extent& extent) const;
  /// The size of the result.
  Extent result(const Extent& extent) const;

  /// True when the first one is a random frame, which the loader then takes of the encoded picture: apply()
  /// does the rest.
  bool frames() const { return !list_.empty() && list_.front()->frames(); }
  /// That frame, and the size that it gives.
  Frame frame(int height, int width, const SampleKey& sample) const;
  Extent framed(const Extent& extent) const { return list_.front()->result(extent); }

  /// Does apply() change anything?
  bool changes() const { return list_.size() > (frames() ? 1 : 0); }
  /// `extent`: of `in`; `out` is of size result(extent). `scratch` is working memory, grown as needed.
  void apply(const Extent& extent, const uint8_t* in, uint8_t* out, const SampleKey& sample,
             std::vector<uint8_t>& scratch) const;

 private:
  std::vector<std::unique_ptr<Augmentation>> list_;
};

}  // namespace millrace::data
