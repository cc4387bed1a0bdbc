#include "data/tools/pack/pack_picture.h"

#include <algorithm>
#include <optional>

#include <millrace/picture.h>

#include "base/format.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/jpeg.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/codecs/pictures/picture_size.h"
#include "data/codecs/pictures/stored_picture.h"

namespace millrace::data {
namespace {

constexpr int largest_side = 65'500;  // of a JPEG file in libjpeg

/// `side` shrunk as `from` becomes `to`.
int follow(int side, int from, int to) {
  return std::max<int>(1, static_cast<int>(int64_t{side} * to / from));
}

void shrink(const PictureRule& rule, int& height, int& width) {
  if (const int shorter = std::min(height, width); rule.resize > 0 && shorter > rule.resize) {
    height = follow(height, shorter, rule.resize);
    width = follow(width, shorter, rule.resize);
  }
  if (const int longer = std::max(height, width); rule.max_side > 0 && longer > rule.max_side) {
    height = follow(height, longer, rule.max_side);
    width = follow(width, longer, rule.max_side);
  }
}

std::optional<PictureSize> size_of(const StoredPicture& sample) {
  if (sample.height > 0) return PictureSize{sample.width, sample.height};
  return picture_size(sample.bytes);
}

StoredPicture encoded(const Picture& picture, int quality) {
  return StoredPicture(Bytes(encode_jpeg(picture, quality > 0 ? quality : 90)));
}

}  // namespace

void PictureRule::validate() const {
  const auto within = [](const char* what, int64_t value, int64_t least, int64_t most) {
    if (value != 0 && (value < least || value > most))
      fail<InputError>("{} {}: it must be {} to {}", what, value, least, most);
  };
  within("--max-side", max_side, 1, largest_side);
  within("--resize", resize, 1, largest_side);
  within("--quality", quality, 1, 100);
  within("--augment", versions, 1, 1000);
  if (versions > 0 && augmentations.empty())
    fail<InputError>("--augment {} needs --augmentations, as \"random-resized-crop 224, flip\"", versions);
  if (versions == 0 && !augmentations.empty())
    fail<InputError>("--augmentations goes with --augment N, the number of versions of each picture");
}

PictureMaker::PictureMaker(const PictureRule& rule) : rule_(rule), augmenter_(rule.augmentations) {
  rule.validate();
}

std::string PictureMaker::make(const StoredPicture& sample, int64_t index,
                               std::vector<StoredPicture>& out) const {
  out.clear();
  const bool all = rule_.versions > 0 || (rule_.quality > 0 && rule_.max_side == 0 && rule_.resize == 0);
  bool changes = all;
  if (!all && (rule_.max_side > 0 || rule_.resize > 0)) {
    const auto size = size_of(sample);
    changes = !size || size->width > largest_side || size->height > largest_side;
    if (!changes) {
      int height = static_cast<int>(size->height), width = static_cast<int>(size->width);
      shrink(rule_, height, width);
      changes = height != size->height || width != size->width;
    }
  }
  Picture picture;
  if (changes || rule_.check)
    if (std::string why = decode_picture(sample, picture); !why.empty()) return why;
  if (!changes) {
    out.push_back(sample);
    return {};
  }
  int height = picture.height, width = picture.width;
  shrink(rule_, height, width);
  if (height != picture.height || width != picture.width) picture = resize(picture, height, width);
  if (rule_.versions > 0) return versions_of(picture, index, out);
  if (std::max(height, width) > largest_side)
    return fmt::format("{} is too large for JPEG; add --max-side", picture.size_text());
  out.push_back(encoded(picture, rule_.quality));
  return {};
}

std::string PictureMaker::versions_of(const Picture& picture, int64_t index,
                                      std::vector<StoredPicture>& out) const {
  const StoredPicture raw({picture.pixels, nullptr}, picture.height, picture.width, picture.channels);
  const Extent whole{picture.channels, picture.height, picture.width};
  std::vector<uint8_t> planes, result, scratch;
  PictureReader reader;
  for (int v = 0; v < rule_.versions; ++v) {
    const SampleKey key{rule_.seed, v, index, index};
    if (std::string why = reader.open(raw); !why.empty()) return why;
    Extent extent = whole;
    Frame frame = whole_frame(whole.height, whole.width, whole.height, whole.width);
    if (augmenter_.frames()) {
      frame = augmenter_.frame(whole.height, whole.width, key);
      extent = augmenter_.framed(whole);
    }
    augmenter_.check(extent);
    planes.resize(extent.bytes());
    if (std::string why = reader.load(frame, extent.channels, false, planes.data()); !why.empty()) return why;
    const Extent end = augmenter_.result(extent);
    result.resize(end.bytes());
    augmenter_.apply(extent, planes.data(), result.data(), key, scratch);
    Picture changed{end.height, end.width, end.channels, std::vector<uint8_t>(end.bytes())};
    const auto channels = static_cast<size_t>(end.channels);
    for (size_t c = 0; c < channels; ++c)
      for (size_t i = 0; i < end.plane(); ++i) changed.pixels[i * channels + c] = result[c * end.plane() + i];
    out.push_back(encoded(changed, rule_.quality));
  }
  return {};
}

}  // namespace millrace::data
