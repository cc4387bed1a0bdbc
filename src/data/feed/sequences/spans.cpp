#include "data/feed/sequences/spans.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include <millrace/random.h>

#include "base/format.h"

namespace millrace::data {
namespace {

/// Positive numbers, `parts` of them, whose sum is `total`: `parts` - 1 of the total - 1 borders, each set as
/// likely as any other.
std::vector<int64_t> divide(int64_t total, int64_t parts, RandomStream& random) {
  std::vector<int64_t> sizes = {1};
  int64_t borders = parts - 1;
  for (int64_t left = total - 1; left > 0; --left)
    // Chosen with the probability that a set of `borders` out of `left` holds the first.
    if (borders > 0 && random.below(static_cast<uint32_t>(left)) < static_cast<uint32_t>(borders)) {
      --borders;
      sizes.push_back(1);
    } else {
      ++sizes.back();
    }
  return sizes;
}

}  // namespace

SpanOptions SpanOptions::parse(std::string_view text) {
  std::istringstream words{std::string(text)};
  SpanOptions options;
  std::string rest;
  const bool read = static_cast<bool>(words >> options.share >> options.mean) && !(words >> rest);
  if (!read || !(options.share > 0 && options.share < 1) || !(options.mean >= 1 && options.mean <= 1e6))
    fail<InputError>("give a share between 0 and 1 and the mean length of a span, as \"0.15 3\", not \"{}\"",
                     text);
  return options;
}

std::vector<uint8_t> random_spans(int64_t length, const SpanOptions& options, uint64_t seed, int64_t epoch,
                                  int64_t position) {
  std::vector<uint8_t> masked(static_cast<size_t>(std::max<int64_t>(length, 0)));
  if (length < 2) return masked;
  const auto wanted = std::llround(static_cast<double>(length) * options.share);
  const int64_t noise = std::clamp<int64_t>(wanted, 1, length - 1), rest = length - noise;
  const int64_t spans =
      std::clamp<int64_t>(std::llround(static_cast<double>(noise) / options.mean), 1, std::min(noise, rest));
  RandomStream random(seed, 0x7370616e00000000 ^ static_cast<uint64_t>(epoch),
                      static_cast<uint64_t>(position));
  const std::vector<int64_t> hidden = divide(noise, spans, random), seen = divide(rest, spans, random);
  size_t at = 0;
  for (size_t i = 0; i < hidden.size(); ++i) {
    at += static_cast<size_t>(seen[i]);
    for (int64_t k = 0; k < hidden[i]; ++k) masked[at++] = 1;
  }
  return masked;
}

}  // namespace millrace::data
