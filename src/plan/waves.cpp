#include <algorithm>

#include "plan/plan.h"

namespace millrace {
namespace {

// Work that more launches would make no better balanced.
constexpr double kLongestWave = 200e3;

}  // namespace

std::vector<int> form_waves(const std::vector<std::vector<int>>& after, const std::vector<double>& small) {
  const size_t count = after.size();
  std::vector<int> wave(count), earliest(count, 0);
  std::vector<double> length;  // of each wave; 0: of a launch that is not small
  for (size_t i = 0; i < count; ++i) {
    int found = static_cast<int>(length.size());
    if (small[i] > 0)
      for (int w = earliest[i]; w < static_cast<int>(length.size()); ++w)
        if (length[w] > 0 && length[w] + small[i] <= kLongestWave) {
          found = w;
          break;
        }
    if (found == static_cast<int>(length.size())) length.push_back(0);
    wave[i] = found;
    length[found] += small[i];
    for (const int later : after[i]) earliest[later] = std::max(earliest[later], found + 1);
  }
  return wave;
}

}  // namespace millrace
