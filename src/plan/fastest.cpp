#include "plan/fastest.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include <millrace/array.h>

#include "base/seconds_since.h"

namespace millrace {
namespace {

// After one that warms up: so many, or more of short ones, which others on the machine disturb more.
constexpr int least_rounds = 3, most_rounds = 12;
constexpr double enough_seconds = 4e-3;  // of all kernels together
// Of kernels as fast as that, measured, the first one is taken: the others are no better that could be told,
// and make their code anew in each process.
constexpr double as_fast = 1.02;
// So much slower, a kernel is worth it that saves something else: memory for weights that are packed already.
constexpr double nearly_as_fast = 1.1;

}  // namespace

Array timing_numbers(const Type& type) {
  Array array(type);
  uint32_t state = 12345;
  constexpr int64_t different = 1 << 16;
  for (int64_t i = 0; i < std::min(array.count(), different); ++i) {
    state = state * 1664525 + 1013904223;
    const double value = (static_cast<double>(state >> 8) / (1 << 24) - 0.5) / 8;
    if (type.dtype == f32)
      array.as<float>()[static_cast<size_t>(i)] = static_cast<float>(value);
    else if (type.dtype.is_float())
      array.set(i, value);
  }
  if (type.dtype.is_float())
    for (int64_t at = different * type.dtype.bits / 8; at < array.bytes(); at *= 2)
      std::memcpy(static_cast<char*>(array.data()) + at, array.data(),
                  static_cast<size_t>(std::min(at, array.bytes() - at)));
  return array;
}

std::vector<size_t> fastest(const std::vector<std::unique_ptr<Kernel>>& kernels, const KernelRequest& request,
                            DeviceContext device) {
  std::vector<Array> arrays;
  std::vector<void*> operands, results;
  for (const Value& operand : request.node.operands) {
    arrays.push_back(timing_numbers(request.graph.type(operand)));
    operands.push_back(arrays.back().data());
  }
  for (const Type& type : request.node.types) {
    arrays.emplace_back(type);
    results.push_back(arrays.back().data());
  }
  int64_t scratch_bytes = 64;
  for (const auto& kernel : kernels) scratch_bytes = std::max(scratch_bytes, kernel->scratch_bytes());
  Array scratch(u8, Shape(std::vector<int64_t>{scratch_bytes}));
  std::vector<double> best(kernels.size(), 1e300);
  double spent = 0;
  // In turns, so that a disturbance meets all.
  for (int round = 0; round <= least_rounds || (round <= most_rounds && spent < enough_seconds); ++round)
    for (size_t k = 0; k < kernels.size(); ++k) {
      const auto begin = std::chrono::steady_clock::now();
      kernels[k]->run(operands.data(), results.data(), scratch.data(), device);
      const double seconds = seconds_since(begin);
      spent += seconds;
      if (round > 0) best[k] = std::min(best[k], seconds);
    }
  const double least = *std::min_element(best.begin(), best.end());
  const auto first =
      std::find_if(best.begin(), best.end(), [&](double seconds) { return seconds <= as_fast * least; });
  std::vector<size_t> near = {static_cast<size_t>(first - best.begin())};
  for (size_t k = 0; k < best.size(); ++k)
    if (k != near[0] && best[k] <= nearly_as_fast * least) near.push_back(k);
  std::sort(near.begin() + 1, near.end(), [&](size_t a, size_t b) { return best[a] < best[b]; });
  return near;
}

size_t most_frugal(const std::vector<std::unique_ptr<Kernel>>& kernels) {
  const auto bytes = [](const auto& kernel) { return kernel->scratch_bytes() - kernel->slots_bytes(); };
  const auto least = std::min_element(kernels.begin(), kernels.end(),
                                      [&](const auto& a, const auto& b) { return bytes(a) < bytes(b); });
  return static_cast<size_t>(least - kernels.begin());
}

}  // namespace millrace
