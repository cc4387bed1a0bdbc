#include "data/feed/sequences/token_part.h"

#include <algorithm>
#include <cstring>

#include <millrace/random.h>

#include "base/crc32c.h"
#include "base/format.h"

namespace millrace::data {

/// A row of each array; null where there is none.
struct TokenPart::Places {
  int64_t length = 0;
  int64_t *tokens = nullptr, *segments = nullptr, *positions = nullptr, *targets = nullptr;
  float* counted = nullptr;
};

TokenPart::TokenPart(std::shared_ptr<const Texts> texts, const TokenOptions& options)
    : texts_(std::move(texts)), options_(options) {
  lay_out();
  if (options_.layout != TokenOptions::Layout::padded) return;  // rows are extracts
  for (size_t text = 0; text < texts_->indices.size(); ++text) {
    const auto sample = static_cast<size_t>(texts_->indices[text]);
    if (sample >= text_of_.size()) text_of_.resize(sample + 1, -1);
    text_of_[sample] = static_cast<int64_t>(text);
  }
}

TokenPart::TokenPart(TextReader reader, const TokenOptions& options)
    : texts_(std::make_shared<Texts>()), reader_(std::move(reader)), options_(options) {
  lay_out();
}

void TokenPart::lay_out() {
  using Layout = TokenOptions::Layout;
  using Learn = TokenOptions::Learn;
  if (options_.length < 1)
    fail<InputError>("input.length = {}: a row has at least one token", options_.length);
  if (options_.learn == Learn::masked && options_.length < 2)
    fail<InputError>("input.masked: of rows of input.length = {} nothing can be masked", options_.length);
  const Shape shape = {Dim::named("batch"), options_.fixed ? Dim(options_.length) : Dim::named("length")};
  fields_ = {{"tokens", {i64, shape}}};
  if (options_.layout != Layout::windows) fields_.push_back({"segments", {i64, shape}});
  if (options_.layout == Layout::packed) fields_.push_back({"positions", {i64, shape}});
  if (options_.learn != Learn::nothing) {
    fields_.push_back({"targets", {i64, shape}});
    if (options_.layout != Layout::windows || options_.learn == Learn::masked)
      fields_.push_back({"counted", {f32, shape}});
  }
}

size_t TokenPart::stored_bytes() const {
  return reader_.tokenizer ? static_cast<size_t>(1 + options_.length + options_.behind()) * sizeof(int64_t)
                           : 0;
}

std::string TokenPart::read(const Dataset& from, int64_t index, const SampleKey* /*random*/,
                            Scratch* /*scratch*/, std::byte* stored) const {
  if (!reader_.tokenizer) return {};
  Value value;
  try {
    value = from.read(index, reader_.column.in(from));
  } catch (const InputError& error) {
    return reason_or_rethrow(error, from, index);
  }
  auto* const places = reinterpret_cast<int64_t*>(stored);
  const int64_t most = options_.length + options_.behind();
  const auto* const own = std::get_if<std::string>(&value);
  if (const auto* const window = std::get_if<Bytes>(&value);
      window && window->size() == static_cast<size_t>(most) * sizeof(int32_t)) {
    std::vector<int32_t> ids(static_cast<size_t>(most));
    std::memcpy(ids.data(), window->data(), window->size());
    places[0] = most;
    std::copy(ids.begin(), ids.end(), places + 1);
    return {};
  }
  if (!own && !std::holds_alternative<std::monostate>(value))
    return fmt::format("its '{}' is no text", reader_.column.name());
  const std::vector<int32_t> ids = reader_.tokenizer->encode((own ? *own : "") + reader_.separator);
  places[0] = std::min<int64_t>(std::ssize(ids), most);
  std::copy_n(ids.begin(), places[0], places + 1);
  return {};
}

Extract TokenPart::extract(int64_t sample, int64_t length) const {
  const auto at = static_cast<size_t>(sample);
  if (at >= text_of_.size() || text_of_[at] < 0)
    fail<InternalError>("{}: its sample {} has no text", texts_->path, sample);
  const int64_t text = text_of_[at];
  return {texts_->begins[static_cast<size_t>(text)],
          std::clamp<int64_t>(texts_->length(text) - options_.behind(), 0, length), text};
}

TokenPart::Places TokenPart::places(const Row& row, std::span<std::byte* const> arrays) const {
  Places at;
  at.length = row.length > 0 && !options_.fixed ? row.length : options_.length;
  for (size_t i = 0; i < fields_.size(); ++i) {
    const std::string& name = fields_[i].name;
    if (name == "counted") {
      at.counted = reinterpret_cast<float*>(arrays[i]);
      continue;
    }
    (name == "tokens"      ? at.tokens
     : name == "segments"  ? at.segments
     : name == "positions" ? at.positions
                           : at.targets) = reinterpret_cast<int64_t*>(arrays[i]);
  }
  return at;
}

void TokenPart::pad(const Row& row, std::span<std::byte* const> arrays) const {
  const Places at = places(row, arrays);
  for (int64_t* const array : {at.tokens, at.segments, at.positions})
    if (array) std::fill_n(array, at.length, int64_t{0});
  if (at.targets) std::fill_n(at.targets, at.length, int64_t{-1});
  if (at.counted) std::fill_n(at.counted, at.length, 0.0F);
}

void TokenPart::put(const std::byte* stored, const Row& row, Scratch* /*scratch*/,
                    std::span<std::byte* const> arrays) const {
  pad(row, arrays);
  Places at = places(row, arrays);
  Extract whole;
  std::span<const Extract> extracts = row.extracts;
  const int64_t* const read = reader_.tokenizer ? reinterpret_cast<const int64_t*>(stored) : nullptr;
  if (read) {
    whole.size = std::max<int64_t>(read[0] - options_.behind(), 0);
    extracts = {&whole, 1};
  } else if (extracts.empty()) {
    whole = extract(row.key.index, at.length);
    extracts = {&whole, 1};
  }
  int64_t place = 0, number = 0;
  for (const Extract& each : extracts) {
    const int64_t size = std::min(each.size, at.length - place);
    const auto get = [&](int64_t begin, int64_t* to) {
      if (read)
        std::copy_n(read + 1 + begin, size, to);
      else
        texts_->tokens.get(begin, {to, static_cast<size_t>(size)});
    };
    get(each.begin, at.tokens + place);
    if (options_.behind() > 0) get(each.begin + 1, at.targets + place);
    ++number;
    if (at.segments) std::fill_n(at.segments + place, size, number);
    for (int64_t k = 0; at.positions && k < size; ++k) at.positions[place + k] = k;
    place += size;
  }
  if (options_.learn == TokenOptions::Learn::masked) mask(row, place, at);
}

/// Masks spans of a row whose first `size` places hold tokens.
void TokenPart::mask(const Row& row, int64_t size, Places& at) const {
  const SampleKey& key = row.key;
  const std::vector<uint8_t> masked = random_spans(size, options_.spans, key.seed, key.epoch, key.position);
  RandomStream random(key.seed, 0x6d61736b00000000 ^ static_cast<uint64_t>(key.epoch),
                      static_cast<uint64_t>(key.position));
  uint32_t choice = 0;
  for (int64_t k = 0; k < size; ++k) {
    if (!masked[static_cast<size_t>(k)]) continue;
    if (k == 0 || !masked[static_cast<size_t>(k) - 1]) choice = random.below(10);
    at.targets[k] = at.tokens[k];
    if (choice < 8)
      at.tokens[k] = options_.mask;
    else if (choice == 8)
      at.tokens[k] = random.below(static_cast<uint32_t>(options_.vocabulary));
  }
}

void TokenPart::finish(int64_t batch, int64_t length, std::span<std::byte* const> arrays) const {
  const Places at = places({{}, length, {}}, arrays);
  if (!at.counted) return;
  const int64_t all = batch * at.length;
  const auto count = std::count_if(at.targets, at.targets + all, [](int64_t target) { return target >= 0; });
  const float each =
      count > 0 ? static_cast<float>(static_cast<double>(all) / static_cast<double>(count)) : 0;
  for (int64_t i = 0; i < all; ++i) at.counted[i] = at.targets[i] >= 0 ? each : 0;
}

int64_t TokenPart::memory() const {
  const int64_t width = options_.vocabulary <= 65536 ? 2 : 4;  // as TokenStore has them
  const auto tables = static_cast<int64_t>(sizeof(int64_t) * (texts_->begins.size() + texts_->indices.size() +
                                                              texts_->labels.size() + text_of_.size()));
  return tables + (texts_->file.empty() ? texts_->tokens.size() * width : 0);
}

uint32_t TokenPart::digest() const {
  constexpr int64_t most = 4096;
  std::vector<int64_t> some;
  uint32_t digest = 0;
  for (int64_t at = 0; at < texts_->tokens.size(); at += most) {
    some.resize(static_cast<size_t>(std::min(most, texts_->tokens.size() - at)));
    texts_->tokens.get(at, some);
    digest = crc32c(some.data(), some.size() * sizeof some[0], digest);
  }
  return digest;
}

}  // namespace millrace::data
