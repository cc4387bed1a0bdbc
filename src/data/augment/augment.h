// Random changes to training pictures.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/picture.h>
#include <millrace/random.h>

#include "data/augment/pass.h"
#include "data/codecs/pictures/frame.h"

namespace millrace::data {

/// What an augmentation may draw from: everything is a function of these, never of threads or time.
struct Draw {
  RandomStream
      random;  // of this sample at this position of this epoch, and of this augmentation's place in the list
  uint64_t seed = 0;
  int64_t epoch = 0, index = 0;  // index: of the sample in its source
};

/// Which sample of a training is changed.
struct SampleKey {
  uint64_t seed = 0;
  int64_t epoch = 0, position = 0;  // position: of the sample in its epoch
  int64_t index = 0;                // of the sample in its source
};

/// One kind of random change with its parameters.
class Augmentation {
 public:
  virtual ~Augmentation() = default;
  /// Reads `in`, planes of uint8 of size `extent`, and writes `out`, planes of size result(extent), which do not overlap.
  virtual void apply(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) const = 0;
  /// What apply() would do, noted instead, where it is no more than a part of a pass. False, and nothing is noted: it is more
  /// than that, or has to stand first in a pass.
  virtual bool collect(const Extent& /*extent*/, Draw& /*draw*/, Pass& /*pass*/) const { return false; }
  /// InputError when pictures of this size cannot be changed so (padding wider than the picture …).
  virtual void check(const Extent&) const {}
  /// The size that pictures of this size get.
  virtual Extent result(const Extent& extent) const { return extent; }
  /// True of what only looks at a part of the picture and resizes it to one size. Where it stands first, only that part is
  /// decoded, and pictures may have any size.
  virtual bool frames() const { return false; }
  /// The part of a picture of this size; of those with frames().
  virtual Frame frame(int /*height*/, int /*width*/, Draw&) const { return {}; }
};

/// An augmentation that is a part of a pass.
class PassAugmentation : public Augmentation {
 public:
  bool collect(const Extent& extent, Draw& draw, Pass& pass) const override = 0;
  void apply(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) const final {
    Pass pass;
    collect(extent, draw, pass);
    pass.run(extent, in, out);
  }
};

/// The words of an augmentation's text, as "pad-crop 4 zero"; messages quote the text.
class AugmentationWords {
 public:
  AugmentationWords(std::string_view text, std::string usage);
  /// The next word as a number within [least, most]; InputError when it is missing or another.
  double number(const char* what, double least, double most);
  int integer(const char* what, int least, int most);
  /// A word "name=0.5" anywhere behind, taken out: its number within [least, most], or `otherwise` without such a word.
  double option(std::string_view name, double otherwise, double least, double most);
  /// A word "name=0.5..1": two numbers within [least, most], the first not above the second.
  std::pair<double, double> range(std::string_view name, std::pair<double, double> otherwise, double least,
                                  double most);
  /// True (and skipped) when the next word is `word`.
  bool take(std::string_view word);
  /// True when no words are left.
  bool empty() const { return next_ >= words_.size(); }
  /// InputError when words are left over.
  void finish();
  [[noreturn]] void wrong(const std::string& why) const;

 private:
  double parse(std::string_view word, std::string_view what, double least, double most) const;
  std::string take_named(std::string_view name);
  std::string text_, usage_;
  std::vector<std::string> words_;
  size_t next_ = 1;
};

/// An augmentation by name; each one is a file here and a line in augment.cpp.
struct AugmentationKind {
  std::string name;   // "pad-crop"
  std::string usage;  // "pad-crop PIXELS [zero]"
  std::unique_ptr<Augmentation> (*make)(AugmentationWords& words);
};
extern const AugmentationKind pad_crop_kind, flip_kind, alternating_flip_kind, random_shift_kind, rotate_kind,
    cutout_kind, random_resized_crop_kind, affine_kind, perspective_kind, colour_jitter_kind, grey_kind,
    blur_kind, solarize_kind, posterize_kind, equalize_kind, autocontrast_kind, erasing_kind, noise_kind,
    randaugment_kind, trivialaugment_kind;

/// Parses a recipe's text, e.g. "pad-crop 2", "flip", "alternating-flip", "random-shift 2", "rotate 15",
/// "cutout 8", "colour-jitter brightness=0.4". InputError names the nearest valid augmentation, or what its parameters are.
std::unique_ptr<Augmentation> parse_augmentation(std::string_view text);

/// The usages of all augmentations, for help texts.
std::vector<std::string> augmentation_usages();

/// A list of augmentations, applied one after the other.
class Augmenter {
 public:
  explicit Augmenter(std::span<const std::string> texts);
  /// InputError when one of them cannot change pictures of this size, or of what those before it make of them.
  void check(const Extent& extent) const;
  /// The size of the result.
  Extent result(const Extent& extent) const;
  bool empty() const { return list_.empty(); }

  /// True when the first one is a random frame, which the loader then takes of the encoded picture: apply() does the rest.
  bool frames() const { return !list_.empty() && list_.front()->frames(); }
  /// That frame, and the size that it gives.
  Frame frame(int height, int width, const SampleKey& sample) const;
  Extent framed(const Extent& extent) const { return list_.front()->result(extent); }

  /// True when apply() only copies.
  bool nothing_to_apply() const { return list_.size() == (frames() ? 1 : 0); }
  /// `extent`: of `in`; `out` is of size result(extent). `scratch` is working memory, grown as needed.
  void apply(const Extent& extent, const uint8_t* in, uint8_t* out, const SampleKey& sample,
             std::vector<uint8_t>& scratch) const;

 private:
  std::vector<std::unique_ptr<Augmentation>> list_;
};

}  // namespace millrace::data
