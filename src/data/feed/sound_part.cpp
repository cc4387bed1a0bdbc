#include "data/feed/sound_part.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "base/mapped_file.h"
#include "data/codecs/sounds/sound.h"
#include "data/table/contents.h"

namespace millrace::data {
namespace {

struct SoundScratch final : Part::Scratch {
  Sound sound;
};

std::string sound_column(const Dataset& dataset, const std::string& name) {
  const auto& columns = dataset.columns();
  if (name.empty()) {
    for (const Column& column : columns)
      if (column.kind == ColumnKind::audio) return column.name;
    fail<InputError>("{}: no column holds sounds (WAV or FLAC files); there are: {}", dataset.path(),
                     columns_text(dataset));
  }
  const Column& column = columns[dataset.column(name)];
  if (column.kind != ColumnKind::audio && column.kind != ColumnKind::bytes)
    fail<InputError>("{}: the column '{}' holds no sounds ({}); there are: {}", dataset.path(), name,
                     kind_name(column.kind), columns_text(dataset));
  return name;
}

}  // namespace

SoundPart::SoundPart(const Dataset& dataset, SoundOptions options)
    : options_(std::move(options)), column_(dataset, sound_column(dataset, options_.column)) {
  if (options_.rate < 100 || options_.rate > 1'000'000)
    fail<InputError>("input.rate = {}: a rate is 100 to 1,000,000 samples a second", options_.rate);
  if (options_.samples < 1) fail<InputError>("sounds of {} samples: there is at least one", options_.samples);
  const Dim batch = Dim::named("batch");
  fields_ = {{"sounds", {f32, {batch, options_.samples}}}};
  if (options_.spec_augment.empty()) return;
  augment_ = SpecAugment::parse(options_.spec_augment);
  if (options_.mels < 1 || options_.frames < 1)
    fail<InputError>("\"{}\" masks spectrograms, not those of {} mels and {} frames", options_.spec_augment,
                     options_.mels, options_.frames);
  fields_.push_back({"mel_mask", {f32, {batch, options_.mels}}});
  fields_.push_back({"frame_mask", {f32, {batch, options_.frames}}});
}

std::unique_ptr<Part::Scratch> SoundPart::scratch() const { return std::make_unique<SoundScratch>(); }

std::string SoundPart::read(const Dataset& from, int64_t index, const SampleKey* /*random*/, Scratch* scratch,
                            std::byte* stored) const {
  Sound& sound = static_cast<SoundScratch&>(*scratch).sound;
  Value value;
  try {
    value = from.read(index, column_.in(from));
  } catch (const Error& error) {
    return reason_or_rethrow(error, from, index);
  }
  const auto* bytes = std::get_if<Bytes>(&value);
  std::string why =
      bytes ? decode_sound(bytes->view(), sound) : fmt::format("its '{}' is missing", column_.name());
  if (!why.empty()) {
    if (bytes) require_mapped_file(bytes->view().data());  // not the sound's fault
    return why;
  }
  mix_to_mono(sound);
  resample(sound, options_.rate);
  sound.samples.resize(static_cast<size_t>(options_.samples));
  // The square of a sum of a window of them, as spectrograms take it, must be an f32.
  constexpr float most = 1e15F;
  if (!std::all_of(sound.samples.begin(), sound.samples.end(), [](float x) { return std::abs(x) <= most; }))
    return "its samples are so large that their power is no number";
  std::memcpy(stored, sound.samples.data(), stored_bytes());
  return {};
}

void SoundPart::put(const std::byte* stored, const Row& row, Scratch* /*scratch*/,
                    std::span<std::byte* const> arrays) const {
  std::memcpy(arrays[0], stored, stored_bytes());
  if (!augment_) return;
  RandomStream random(row.key.seed, 0x6368616e00000000 ^ static_cast<uint64_t>(row.key.epoch),
                      static_cast<uint64_t>(row.key.position));
  augment_->draw(options_.mels, options_.frames, random,
                 {reinterpret_cast<float*>(arrays[1]), static_cast<size_t>(options_.mels)},
                 {reinterpret_cast<float*>(arrays[2]), static_cast<size_t>(options_.frames)});
}

std::shared_ptr<const SoundPart> sound_part(const Dataset& dataset, SoundOptions options) {
  return std::make_shared<SoundPart>(dataset, std::move(options));
}

}  // namespace millrace::data
