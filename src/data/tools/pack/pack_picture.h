// A picture as it goes into shards: as it is, made smaller, or changed at random.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/augment/augment.h"
#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/stored_picture.h"

namespace millrace::data {

struct PictureRule {
  /// The longer side becomes at most so long, the shorter one at most so long; 0: as it is. The other side
  /// follows, rounded down. Nothing is enlarged.
  int max_side = 0, resize = 0;
  /// 1 to 100, of the JPEG files that are made; 0: 90. Without a size, every picture is made anew at this
  /// quality.
  int quality = 0;
  /// So many versions of each picture, changed by `augmentations` (as in a recipe), instead of the picture;
  /// 0: none.
  int versions = 0;
  std::vector<std::string> augmentations;
  uint64_t seed = 1;
  /// Every picture is decoded, to find bad ones, even when it stays as it is.
  bool check = false;

  /// InputError when something is out of its range or the augmentations make no sense.
  void validate() const;
  /// False when pictures are only copied.
  bool decodes() const { return changes() || check; }
  bool changes() const { return max_side > 0 || resize > 0 || quality > 0 || versions > 0; }
};

/// Thread-safe.
class PictureMaker {
 public:
  explicit PictureMaker(const PictureRule& rule);
  /// What becomes of a sample: one picture, or one for each version. `index` is its number in the source,
  /// from which version v (as an epoch) draws its changes. Returns "" or the reason why it is no good
  /// picture.
  [[nodiscard]] std::string make(const StoredPicture& sample, int64_t index,
                                 std::vector<StoredPicture>& out) const;

 private:
  [[nodiscard]] std::string versions_of(const Picture& picture, int64_t index,
                                        std::vector<StoredPicture>& out) const;
  PictureRule rule_;
  Augmenter augmenter_;
};

}  // namespace millrace::data
