#include "data/augment/augment.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "base/suggest.h"

namespace millrace::data {
namespace {

const std::vector<const AugmentationKind*>& kinds() {
  static const std::vector<const AugmentationKind*> list = {
      &pad_crop_kind, &flip_kind, &alternating_flip_kind, &random_shift_kind, &rotate_kind, &cutout_kind};
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

double AugmentationWords::number(const char* what, double least, double most) {
  if (next_ >= words_.size()) wrong(fmt::format("{} is missing", what));
  const std::string& word = words_[next_++];
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !(value >= least && value <= most))
    wrong(fmt::format("{} must be a number from {} to {}, not \"{}\"", what, least, most, word));
  return value;
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

void Augmenter::check(const Extent& extent) const {
  for (const auto& augmentation : list_) augmentation->check(extent);
}

void Augmenter::apply(const Extent& extent, const uint8_t* in, uint8_t* out, uint64_t seed, int64_t epoch,
                      int64_t position, int64_t index, std::vector<uint8_t>& scratch) const {
  if (list_.empty()) {
    std::memcpy(out, in, extent.bytes());
    return;
  }
  scratch.resize(extent.bytes());
  // Ping-pong between `out` and `scratch` so that the last one writes `out`.
  const uint8_t* from = in;
  for (size_t i = 0; i < list_.size(); ++i) {
    uint8_t* to = (list_.size() - i) % 2 ? out : scratch.data();
    const uint64_t stream = uint64_t{i + 1} << 32 | static_cast<uint32_t>(epoch);
    Draw draw{RandomStream(seed, stream, static_cast<uint64_t>(position)), seed, epoch, index};
    list_[i]->apply(extent, from, to, draw);
    from = to;
  }
}

}  // namespace millrace::data
