#include "data/augment/augment.h"

#include <cstring>

#include "base/word_settings.h"
#include "base/words.h"

namespace millrace::data {
#include "generated/augmentations.inc"

namespace {

std::string usage_of_kind(const AugmentationKind& kind) {
  return usage_of(kind.name, kind.settings, kind.words_optional);
}

}  // namespace

Registry<AugmentationKind>& augmentations() {
  static Registry<AugmentationKind> all("augmentation", {MILLRACE_FOUND_AUGMENTATIONS});
  return all;
}

const AugmentationKind& register_augmentation(const AugmentationKind& kind) {
  return augmentations().add(kind, {{"make", kind.make}});
}

std::unique_ptr<Augmentation> parse_augmentation(std::string_view text) {
  const std::vector<std::string> words = split_words(text);
  const std::string name = words.empty() ? "" : words.front();
  const AugmentationKind* const kind = augmentations().find(name);
  if (!kind)
    fail<InputError>("augmentation \"{}\" is unknown{} There are: {}", text,
                     did_you_mean(name, augmentations().names(), ".", '"'),
                     fmt::join(augmentation_usages(), ", "));
  const Settings settings = parse_words("augmentation", text, kind->settings, kind->words_optional);
  try {
    return made_by("augmentation", name, kind->make(settings));
  } catch (const InputError& error) {
    wrong_words("augmentation", text, error.what(), usage_of_kind(*kind));
  }
}

std::vector<std::string> augmentation_usages() {
  std::vector<std::string> usages;
  for (const AugmentationKind* kind : augmentations().all()) usages.push_back(usage_of_kind(*kind));
  return usages;
}

Augmenter::Augmenter(std::span<const std::string> texts) {
  for (const std::string& text : texts) list_.push_back(parse_augmentation(text));
}

namespace {

/// What the augmentation at `place` in the list draws from for this sample.
Draw draw_for(const SampleKey& sample, size_t place) {
  const uint64_t stream = uint64_t{place + 1} << 32 | static_cast<uint32_t>(sample.epoch);
  return {RandomStream(sample.seed, stream, static_cast<uint64_t>(sample.position)), sample.seed,
          sample.epoch, sample.index};
}

}  // namespace

void Augmenter::check(const Extent& extent) const {
  Extent now = extent;
  for (const auto& augmentation : list_) {
    augmentation->check(now);
    now = augmentation->result(now);
  }
}

Extent Augmenter::result(const Extent& extent) const {
  Extent now = extent;
  for (const auto& augmentation : list_) now = augmentation->result(now);
  return now;
}

Frame Augmenter::frame(int height, int width, const SampleKey& sample) const {
  Draw draw = draw_for(sample, 0);
  return list_.front()->frame(height, width, draw);
}

void Augmenter::apply(const Extent& extent, const uint8_t* in, uint8_t* out, const SampleKey& sample,
                      std::vector<uint8_t>& scratch) const {
  if (!changes()) {
    std::memcpy(out, in, extent.bytes());
    return;
  }
  const size_t begin = frames() ? 1 : 0;
  // What lies between is in two halves of the scratch, by turns.
  size_t most = 0;
  Extent now = extent;
  for (size_t i = begin; i < list_.size(); ++i) {
    most = std::max(most, now.bytes());
    now = list_[i]->result(now);
  }
  if (scratch.size() < 2 * most) scratch.resize(2 * most);
  const uint8_t* from = in;
  size_t half = 0;
  const auto next = [&](bool last) { return last ? out : scratch.data() + (half++ % 2) * most; };
  Pass pass;
  now = extent;
  for (size_t i = begin; i < list_.size(); now = list_[i++]->result(now)) {
    Draw draw = draw_for(sample, i);
    if (list_[i]->collect(now, draw, pass)) continue;
    if (!pass.empty()) {
      uint8_t* const to = next(false);
      pass.run(now, from, to);
      pass = {};
      from = to;
      draw = draw_for(sample, i);
      if (list_[i]->collect(now, draw, pass)) continue;
    }
    uint8_t* const to = next(i + 1 == list_.size());
    list_[i]->apply(now, from, to, draw);
    from = to;
  }
  if (from != out) pass.run(now, from, out);
}

}  // namespace millrace::data
