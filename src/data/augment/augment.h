// Random changes to training pictures.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/philox.h"

namespace millrace::data {

/// The size of pictures in planes (CHW).
struct Extent {
  int channels = 0, height = 0, width = 0;
  size_t plane() const { return static_cast<size_t>(height) * width; }
  size_t bytes() const { return plane() * channels; }
};

/// What an augmentation may draw from: everything is a function of these, never of threads or time.
struct Draw {
  RandomStream
      random;  // of this sample at this position of this epoch, and of this augmentation's place in the list
  uint64_t seed = 0;
  int64_t epoch = 0, index = 0;  // index: of the sample in its source
};

/// One kind of random change with its parameters. Sizes never change.
class Augmentation {
 public:
  virtual ~Augmentation() = default;
  /// Reads `in` and writes `out` (planes of uint8, not overlapping).
  virtual void apply(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) const = 0;
  /// InputError when pictures of this size cannot be changed so (padding wider than the picture …).
  virtual void check(const Extent&) const {}
};

/// The words of an augmentation's text, as "pad-crop 4 zero"; messages quote the text.
class AugmentationWords {
 public:
  AugmentationWords(std::string_view text, std::string usage);
  /// The next word as a number within [least, most]; InputError when it is missing or another.
  double number(const char* what, double least, double most);
  int integer(const char* what, int least, int most);
  /// True (and skipped) when the next word is `word`.
  bool take(std::string_view word);
  /// InputError when words are left over.
  void finish();
  [[noreturn]] void wrong(const std::string& why) const;

 private:
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
    cutout_kind;

/// Parses a recipe's text, e.g. "pad-crop 2", "flip", "alternating-flip", "random-shift 2", "rotate 15",
/// "cutout 8". InputError names the nearest valid augmentation, or what its parameters are.
std::unique_ptr<Augmentation> parse_augmentation(std::string_view text);

/// The usages of all augmentations, for help texts.
std::vector<std::string> augmentation_usages();

/// A list of augmentations, applied one after the other.
class Augmenter {
 public:
  explicit Augmenter(std::span<const std::string> texts);
  void check(const Extent& extent) const;
  bool empty() const { return list_.empty(); }
  /// `position`: of the sample in its epoch. `scratch` is working memory, grown as needed.
  void apply(const Extent& extent, const uint8_t* in, uint8_t* out, uint64_t seed, int64_t epoch,
             int64_t position, int64_t index, std::vector<uint8_t>& scratch) const;

 private:
  std::vector<std::unique_ptr<Augmentation>> list_;
};

}  // namespace millrace::data
