#include "backend/cpu/kernels/resize/table.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels/resize/loops.h"
#include "backend/cpu/kernels/vectors.h"

namespace millrace::cpu {

void ResizeTable::make(int in, double start, double end, int out, int keep_from, int keep) {
  const double scale = (end - start) / out, filter = std::max(scale, 1.0), inverse = 1.0 / filter;
  width = (static_cast<int>(std::ceil(filter)) * 2 + 1 + 3) / 4 * 4;
  first.resize(static_cast<size_t>(keep));
  count.resize(static_cast<size_t>(keep));
  weights.assign(static_cast<size_t>(keep) * width, 0);
  same = scale == 1 && start == std::floor(start);
  std::vector<double> real(static_cast<size_t>(width));
  for (int i = 0; i < keep; ++i) {
    const double centre = start + (keep_from + i + 0.5) * scale;
    const int from = std::max(static_cast<int>(centre - filter + 0.5), 0);
    const int to = std::min(static_cast<int>(centre + filter + 0.5), in);
    double sum = 0;
    for (int x = from; x < to; ++x) {
      real[x - from] = std::max(0.0, 1.0 - std::abs((x - centre + 0.5) * inverse));
      sum += real[x - from];
    }
    first[i] = from;
    count[i] = to - from;
    // Edge pixels whose weight is nothing need not be there.
    int32_t* const to_weights = &weights[static_cast<size_t>(i) * width];
    for (int k = 0; k < to - from; ++k)
      to_weights[k] = static_cast<int32_t>(0.5 + (sum == 0 ? 0.0 : real[k] / sum) * (1 << kWeightBits));
    while (count[i] > 1 && to_weights[count[i] - 1] == 0) --count[i];
    while (count[i] > 1 && to_weights[0] == 0) {
      std::copy(to_weights + 1, to_weights + count[i], to_weights);
      to_weights[--count[i]] = 0;
      ++first[i];
    }
  }
}

const ResizeLoops& resize_loops() {
  static const ResizeLoops& best =
      *for_this_cpu(resize_loops_avx512, resize_loops_avx2, resize_loops_baseline).front();
  return best;
}

}  // namespace millrace::cpu
