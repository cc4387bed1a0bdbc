// Pictures of one size as a part of samples.
#pragma once

#include <optional>

#include <millrace/picture.h>

#include "data/augment/augment.h"
#include "data/augment/mix.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/feed/part.h"

namespace millrace::data {

struct PictureOptions {
  /// The column; "": the pictures of a sample, whichever column of them it has (Contents).
  std::string column = {};
  /// As in a recipe: {"pad-crop 2", "flip"}; {"mixup 0.2", "cutmix 1"}. Both for training alone.
  std::vector<std::string> augment = {}, mix = {};
  /// As FrameRule; not used where the first augmentation is a random frame.
  int resize = 0, crop = 0;
  /// 1 grey, 3 colour, 0: as the first picture is. Grey pictures always become colour ones where those are
  /// wanted.
  int channels = 0;
  /// What a trained model takes: its channels are wanted, and pictures of another size are refused.
  std::optional<Extent> wanted = std::nullopt;
  /// With `wanted`: pictures of any size are brought to that one, by the crop, else all of the picture is
  /// resized to it. None need be good; one that is smaller than the crop is bad.
  bool bring = false;
  /// What the keys above are called by in messages: "input" of "input.resize".
  std::string key = "input";
};

/// Field: pictures u8 [batch, C, H, W]; read are planes of stored_extent(), put changes them at random to
/// extent(). Where the first augmentation is a random frame, that one is taken of each picture, which is
/// decoded anew every time and may have any size.
class PicturePart final : public Part {
 public:
  /// Looks for the first good picture, which decides on the size. InputError: no good picture, unknown
  /// augmentations or mixing, sizes that do not go, another size than wanted.
  PicturePart(const Dataset& dataset, PictureOptions options);

  std::span<const Field> fields() const override { return fields_; }
  std::unique_ptr<Scratch> scratch() const override;
  size_t stored_bytes() const override { return stored_.bytes(); }
  bool keeps() const override { return !augmenter_.frames(); }
  std::string read(const Dataset& from, int64_t index, const SampleKey* random, Scratch* scratch,
                   std::byte* stored) const override;
  bool reads_rows() const override { return !augmenter_.changes(); }
  void put(const std::byte* stored, const Row& row, Scratch* scratch,
           std::span<std::byte* const> arrays) const override;
  bool mixes() const override { return !mixer_.empty(); }
  float mix(std::span<std::byte* const> arrays, int64_t count, const SampleKey& batch,
            Scratch* scratch) const override;

  /// Of the pictures in a batch, and as they are read.
  const Extent& extent() const { return result_; }
  const Extent& stored_extent() const { return stored_; }

 private:
  StoredPicture picture_of(const Dataset& from, int64_t index) const;
  int channels_for(int own) const { return channels_ == 0 ? own : channels_; }
  Frame frame_for(const Dataset& from, int64_t index, const SampleKey* random,
                  const PictureReader& reader) const;
  void find_first(const Dataset& dataset);

  std::optional<ColumnPlace> column_;
  std::string key_;
  bool bring_;
  Augmenter augmenter_;
  Mixer mixer_;
  FrameRule rule_;
  int channels_;
  Extent stored_, result_;
  std::string first_name_;
  std::vector<Field> fields_;
};

std::shared_ptr<const PicturePart> picture_part(const Dataset& dataset, PictureOptions options);

}  // namespace millrace::data
