// Random spans of a row, to be masked: which tokens a model is to predict from those around them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace::data {

struct SpanOptions {
  double share = 0.15;  // of the tokens
  double mean = 3;      // length of a span
  /// "0.15 3"; InputError when it is not 0 < share < 1, mean ≥ 1.
  static SpanOptions parse(std::string_view text);
};

/// 1 where masked. T5's choice (Raffel et al., arXiv 1910.10683, random_spans_noise_mask): round(length ·
/// share) tokens, at least one and not all, in round(masked / mean) spans, at least one; the lengths of the
/// spans and of what is between them are uniform among all ways to divide them, and the row begins with what
/// is not masked. A row of fewer than 2 tokens has none. Drawn by seed, epoch and position alone.
std::vector<uint8_t> random_spans(int64_t length, const SpanOptions& options, uint64_t seed, int64_t epoch,
                                  int64_t position);

}  // namespace millrace::data
