// Random changes to training pictures.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <millrace/picture.h>
#include <millrace/random.h>
#include <millrace/settings.h>

namespace millrace::data {

class Pass;  // of the library: what neighbouring augmentations do to places and values, made at once

/// What an augmentation may draw from: everything is a function of these, never of threads or time.
struct Draw {
  RandomStream
      random;  // of this sample at this position of this epoch, and of this augmentation's place in the list
  uint64_t seed = 0;
  int64_t epoch = 0, index = 0;  // index: of the sample in its source
};

/// One kind of random change with its parameters.
class Augmentation {
 public:
  virtual ~Augmentation() = default;
  /// Reads `in`, planes of uint8 of size `extent`, and writes `out`, planes of size result(extent), which do
  /// not overlap.
  virtual void apply(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) const = 0;
  /// What apply() would do, noted instead, where it is no more than a part of a pass. False, and nothing is
  /// noted: it is more than that, or has to stand first in a pass.
  virtual bool collect(const Extent& /*extent*/, Draw& /*draw*/, Pass& /*pass*/) const { return false; }
  /// InputError when pictures of this size cannot be changed so (padding wider than the picture …).
  virtual void check(const Extent&) const {}
  /// The size that pictures of this size get.
  virtual Extent result(const Extent& extent) const { return extent; }
  /// True of what only looks at a part of the picture and resizes it to one size. Where it stands first, only
  /// that part is decoded, and pictures may have any size.
  virtual bool frames() const { return false; }
  /// The part of a picture of this size; of those with frames().
  virtual Frame frame(int /*height*/, int /*width*/, Draw&) const { return {}; }
};

/// An augmentation by name.
struct AugmentationKind {
  std::string name;  // "pad-crop"
  std::string doc = {};
  int place = 0;  // in lists; the library's have 10, 20 …

  /// What its text may say: names in CAPITALS are words that stand behind the name ("dim LEAST" is written
  /// "dim 0.5"), in their order; true or false is the name or nothing; other numbers are name=0.5, two
  /// numbers (a range) name=0.5..1, at any place.
  std::vector<Setting> settings = {};
  bool words_optional = false;  // those in CAPITALS: all are given, or none
  /// InputError, without the text, for settings that make none.
  std::unique_ptr<Augmentation> (*make)(const Settings& settings) = nullptr;
};

/// Adds an augmentation to those of the library: recipes name it in input.augment. InputError when its name
/// is taken, or `doc` or `make` is missing.
const AugmentationKind& register_augmentation(const AugmentationKind& kind);

}  // namespace millrace::data
