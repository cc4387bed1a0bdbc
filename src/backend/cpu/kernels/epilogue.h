// What a kernel does to its sums before they are stored (fused_conv2d): bias and residual are added, the
// result is limited and rounded.
#pragma once

#include <limits>

#include "backend/cpu/kernels/epilogue_math.h"
#include "target/provider.h"

namespace millrace::cpu {

struct Epilogue {
  bool present = false;   // false: sums are results
  bool residual = false;  // operand 2; the bias is the last one
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  EpilogueMath::Finish finish = nullptr;

  /// What of a run belongs to channel `channel` of the result on, `offset` bytes into it.
  struct At {
    const float* bias;
    const char* added;
  };
  At at(void* const* operands, int64_t channel, int64_t offset) const {
    if (!present) return {nullptr, nullptr};
    return {static_cast<const float*>(operands[residual ? 3 : 2]) + channel,
            residual ? static_cast<const char*>(operands[2]) + offset : nullptr};
  }
  void operator()(const float* sums, const At& at, void* to, int64_t count) const {
    finish(sums, at.bias, at.added, to, count, low, high);
  }
};
Epilogue epilogue_of(const Node& node);

}  // namespace millrace::cpu
