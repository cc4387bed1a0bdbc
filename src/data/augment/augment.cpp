#include "data/augment/augment.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "base/suggest.h"

namespace millrace::data {
namespace {

const std::vector<const AugmentationKind*>& kinds() {
  static const std::vector<const AugmentationKind*> list = {&pad_crop_kind,
                                                            &flip_kind,
                                                            &alternating_flip_kind,
                                                            &random_shift_kind,
                                                            &rotate_kind,
                                                            &cutout_kind,
                                                            &random_resized_crop_kind,
                                                            &affine_kind,
                                                            &perspective_kind,
                                                            &colour_jitter_kind,
                                                            &grey_kind,
                                                            &blur_kind,
                                                            &solarize_kind,
                                                            &posterize_kind,
                                                            &equalize_kind,
                                                            &autocontrast_kind,
                                                            &erasing_kind,
                                                            &noise_kind,
                                                            &randaugment_kind,
                                                            &trivialaugment_kind};
  return list;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(" \t", at), text.size());
    if (end > at) words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

}  // namespace

AugmentationWords::AugmentationWords(std::string_view text, std::string usage)
    : text_(text), usage_(std::move(usage)), words_(split_words(text)) {}

double AugmentationWords::parse(std::string_view word, std::string_view what, double least,
                                double most) const {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !(value >= least && value <= most))
    wrong(fmt::format("{} must be a number from {} to {}, not \"{}\"", what, least, most, word));
  return value;
}

double AugmentationWords::number(const char* what, double least, double most) {
  if (next_ >= words_.size()) wrong(fmt::format("{} is missing", what));
  return parse(words_[next_++], what, least, most);
}

std::string AugmentationWords::take_named(std::string_view name) {
  for (size_t i = next_; i < words_.size(); ++i) {
    const std::string word = words_[i];
    if (!word.starts_with(name) || word.size() == name.size() || word[name.size()] != '=') continue;
    words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(i));
    if (word.size() == name.size() + 1) wrong(fmt::format("{} is missing", name));
    return word.substr(name.size() + 1);
  }
  return {};
}

double AugmentationWords::option(std::string_view name, double otherwise, double least, double most) {
  const std::string word = take_named(name);
  return word.empty() ? otherwise : parse(word, name, least, most);
}

std::pair<double, double> AugmentationWords::range(std::string_view name, std::pair<double, double> otherwise,
                                                   double least, double most) {
  const std::string word = take_named(name);
  if (word.empty()) return otherwise;
  const size_t dots = word.find("..");
  if (dots == std::string::npos)
    wrong(fmt::format("{} must be two numbers with .. between them, not \"{}\"", name, word));
  const std::string_view both = word;
  const double first = parse(both.substr(0, dots), name, least, most),
               second = parse(both.substr(dots + 2), name, least, most);
  if (first > second) wrong(fmt::format("{} must not begin above its end", name));
  return {first, second};
}

int AugmentationWords::integer(const char* what, int least, int most) {
  const double value = number(what, least, most);
  if (value != std::floor(value)) wrong(fmt::format("{} must be a whole number", what));
  return static_cast<int>(value);
}

bool AugmentationWords::take(std::string_view word) {
  if (next_ >= words_.size() || words_[next_] != word) return false;
  ++next_;
  return true;
}

void AugmentationWords::finish() {
  if (next_ < words_.size()) wrong(fmt::format("\"{}\" is too much", words_[next_]));
}

void AugmentationWords::wrong(const std::string& why) const {
  fail<InputError>("augmentation \"{}\": {}; write it as {}", text_, why, usage_);
}

std::unique_ptr<Augmentation> parse_augmentation(std::string_view text) {
  const std::vector<std::string> words = split_words(text);
  const std::string name = words.empty() ? "" : words.front();
  std::vector<std::string> names;
  for (const AugmentationKind* kind : kinds()) {
    if (kind->name == name) {
      AugmentationWords arguments(text, kind->usage);
      auto augmentation = kind->make(arguments);
      arguments.finish();
      return augmentation;
    }
    names.push_back(kind->name);
  }
  fail<InputError>("augmentation \"{}\" is unknown; did you mean \"{}\"? There are: {}", text,
                   nearest(name, names), fmt::join(augmentation_usages(), ", "));
}

std::vector<std::string> augmentation_usages() {
  std::vector<std::string> usages;
  for (const AugmentationKind* kind : kinds()) usages.push_back(kind->usage);
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
  if (nothing_to_apply()) {
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
