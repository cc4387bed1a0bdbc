#include "track/exhibit.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace millrace::track {
namespace {

/// Calls `use` with every finite element.
template <typename Use>
void each_finite(const Array& values, Use&& use) {
  const int64_t count = values.count();
  if (values.dtype() == f32) {
    for (const float value : values.as<float>())
      if (std::isfinite(value)) use(static_cast<double>(value));
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    if (const double value = values.at(i); std::isfinite(value)) use(value);
}

}  // namespace

std::vector<Exhibit::Bucket> histogram_of(const Array& values, int64_t buckets) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  each_finite(values, [&](double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  });
  if (!(low <= high)) return {};
  // One value is a bucket of width 0, as TensorBoard draws it.
  const int64_t count = low == high ? 1 : buckets;
  const double width = (high - low) / static_cast<double>(count);
  std::vector<Exhibit::Bucket> all(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    all[static_cast<size_t>(i)] = {low + static_cast<double>(i) * width,
                                   i + 1 == count ? high : low + static_cast<double>(i + 1) * width, 0};
  each_finite(values, [&](double value) {
    const auto place = width > 0 ? static_cast<int64_t>((value - low) / width) : 0;
    all[static_cast<size_t>(std::min(place, count - 1))].count += 1;
  });
  return all;
}

}  // namespace millrace::track
