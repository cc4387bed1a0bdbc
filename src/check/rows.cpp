#include "check/rows.h"

#include <cmath>
#include <cstring>

#include <millrace/random.h>

#include "optim/model_scope.h"

namespace millrace::check {

bool has_rows(const Array& array, int64_t rows) {
  return array.shape().rank() > 0 && array.shape()[0].size() == rows && array.count() > 0;
}

Array picked_rows(const Array& array, std::span<const int64_t> from) {
  Shape shape = array.shape();
  const auto width = static_cast<size_t>(array.bytes() / shape[0].size());
  shape[0] = std::ssize(from);
  Array picked(array.dtype(), shape);
  const auto* in = static_cast<const std::byte*>(array.data());
  auto* out = static_cast<std::byte*>(picked.data());
  for (size_t r = 0; r < from.size(); ++r)
    std::memcpy(out + r * width, in + static_cast<size_t>(from[r]) * width, width);
  return picked;
}

Array with_rows(const Array& array, std::span<const int64_t> from) {
  return has_rows(array, std::ssize(from)) ? picked_rows(array, from) : array.clone();
}

int64_t different_row(std::span<const Array> arrays, int64_t row, int64_t rows) {
  int64_t best = -1, most = 0;
  for (int64_t other = 0; other < rows; ++other) {
    int64_t differing = 0;
    for (const Array& array : arrays) {
      if (!has_rows(array, rows)) continue;
      const int64_t width = array.bytes() / rows;
      const auto* bytes = static_cast<const std::byte*>(array.data());
      for (int64_t i = 0; i < width; ++i) differing += bytes[row * width + i] != bytes[other * width + i];
    }
    if (differing > most) {
      most = differing;
      best = other;
    }
  }
  return best;
}

void widen_weights(Context& context) {
  uint64_t stream = 0;
  for (const nn::Named& p : context.model()->parameters()) {
    Array array = optim::value_of(p);
    RandomStream random(20, stream++);
    const int rank = array.shape().rank();
    const double fan_in =
        rank < 2 ? 1 : static_cast<double>(array.count()) / static_cast<double>(array.shape()[0].size());
    const double width = rank < 2 ? 0.3 : 1.5 / std::sqrt(fan_in);
    for (int64_t i = 0; i < array.count(); ++i) {
      // Uniform, of that deviation.
      const double noise = (2 * random.uniform() - 1) * std::sqrt(3.0) * width;
      array.set(i, rank < 2 ? array.at(i) + noise : noise);
    }
  }
}

}  // namespace millrace::check
