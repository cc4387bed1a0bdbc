// Weights with their taps outermost, as products want them, and innermost, as users have them.
#pragma once

#include <vector>

#include "backend/cpu/kernels/gemm/arithmetic.h"

namespace millrace::cpu::gemm {

/// Moves the taps of weights [channels, taps] outwards, [taps, channels] with `step` elements between taps,
/// and back.
class TapOrder {
 public:
  TapOrder(const Arithmetic& arithmetic, int64_t taps);
  void outwards(const void* from, void* to, int64_t step, int64_t channels) const {
    move(true, from, to, step, channels);
  }
  void inwards(const void* from, int64_t step, void* to, int64_t channels) const {
    move(false, from, to, step, channels);
  }

 private:
  struct Tables {
    std::vector<uint16_t> index;
    std::vector<uint32_t> mask;
  };
  bool whole_vectors() const;
  void move(bool out, const void* from, void* to, int64_t step, int64_t channels) const;
  template <typename T>
  void move_rest(bool out, const void* from, void* to, int64_t step, int64_t begin, int64_t end) const;

  const Arithmetic& arithmetic_;
  int64_t taps_;
  Tables outwards_, inwards_;
};

}  // namespace millrace::cpu::gemm
