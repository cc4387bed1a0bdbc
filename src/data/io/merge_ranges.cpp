#include "data/io/merge_ranges.h"

#include <algorithm>
#include <tuple>

namespace millrace::data {

std::vector<WantedRange> merge_ranges(std::vector<WantedRange> ranges, uint64_t most) {
  std::sort(ranges.begin(), ranges.end(), [](const WantedRange& a, const WantedRange& b) {
    return std::tie(a.object, a.begin, a.end) < std::tie(b.object, b.begin, b.end);
  });
  std::vector<WantedRange> merged;
  uint64_t wanted = 0;  // bytes of the last of these that are
  for (WantedRange range : ranges) {
    if (!merged.empty() && merged.back().object == range.object) {
      WantedRange& last = merged.back();
      if (range.begin < last.end) last.rank = std::min(last.rank, range.rank);
      range.begin = std::max(range.begin, std::min(last.end, range.end));  // not twice
      if (range.begin == range.end) continue;
      const uint64_t size = range.end - range.begin, all = range.end - last.begin;
      if (all <= most &&
          static_cast<double>(all - wanted - size) <= most_holes * static_cast<double>(wanted + size)) {
        last.end = range.end;
        last.rank = std::min(last.rank, range.rank);
        wanted += size;
        continue;
      }
    }
    for (; range.begin < range.end; range.begin += wanted) {
      wanted = std::min(most, range.end - range.begin);
      merged.push_back({range.object, range.begin, range.begin + wanted, range.rank});
    }
  }
  std::stable_sort(merged.begin(), merged.end(),
                   [](const WantedRange& a, const WantedRange& b) { return a.rank < b.rank; });
  return merged;
}

}  // namespace millrace::data
