// Sounds as a part of samples.
#pragma once

#include <optional>

#include "data/augment/spec_augment.h"
#include "data/feed/part.h"

namespace millrace::data {

struct SoundOptions {
  /// "": the first column of sounds (the task settles which one where there are several).
  std::string column = {};
  int rate = 16'000;         // samples a second
  int64_t samples = 16'000;  // of each sound: longer ones are cut, behind shorter ones is silence
  /// Of training: "spec-augment 2 15 2 25 0.2" masks spectrograms of so many mels and frames; "": nothing
  /// does.
  std::string spec_augment = {};
  int64_t mels = 0, frames = 0;
};

/// Fields:
///   sounds      f32 [batch, samples], one channel (the mean of all)
///   mel_mask    f32 [batch, mels], with spec_augment: 1 where a mel is kept, 0 where it is masked
///   frame_mask  f32 [batch, frames], the same of time
class SoundPart final : public Part {
 public:
  /// InputError: no column of sounds, sizes or a text of spec_augment that do not go.
  SoundPart(const Dataset& dataset, SoundOptions options);

  std::span<const Field> fields() const override { return fields_; }
  std::unique_ptr<Scratch> scratch() const override;
  size_t stored_bytes() const override { return static_cast<size_t>(options_.samples) * sizeof(float); }
  std::string read(const Dataset& from, int64_t index, const SampleKey* random, Scratch* scratch,
                   std::byte* stored) const override;
  void put(const std::byte* stored, const Row& row, Scratch* scratch,
           std::span<std::byte* const> arrays) const override;
  bool only_copies() const override { return !augment_; }

 private:
  SoundOptions options_;
  ColumnPlace column_;
  std::optional<SpecAugment> augment_;
  std::vector<Field> fields_;
};

std::shared_ptr<const SoundPart> sound_part(const Dataset& dataset, SoundOptions options);

}  // namespace millrace::data
