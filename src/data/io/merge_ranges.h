// Which requests fetch parts of remote files.
#pragma once

#include <cstdint>
#include <vector>

namespace millrace::data {

/// Bytes [begin, end) of an object, wanted `rank`th.
struct WantedRange {
  uint64_t object = 0, begin = 0, end = 0;
  int64_t rank = 0;
};

/// What is fetched of holes is at most this share of what is wanted.
inline constexpr double most_holes = 0.2;

/// The same bytes, each once, in requests of at most `most` bytes, in the order of what is wanted first in
/// each: ranges that touch, overlap or lie near each other are one, as long as holes stay within most_holes
/// of it. So traffic is bounded whatever is asked for, and neighbours do not cost a request each.
std::vector<WantedRange> merge_ranges(std::vector<WantedRange> ranges, uint64_t most);

}  // namespace millrace::data
