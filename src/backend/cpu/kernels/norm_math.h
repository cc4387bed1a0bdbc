// The arithmetic of layer normalisation on rows in f32, once for each kind of CPU.
#pragma once

#include <cstdint>
#include <span>

namespace millrace::cpu {

/// Rows of `width` floats; pointers may be null where the doc says so.
struct NormLoops {
  /// y = (x − mean) / sqrt(variance + epsilon) · weight + bias; weight and bias may be null. y may be x.
  void (*forward)(const float* x, const float* weight, const float* bias, float* y, int64_t rows,
                  int64_t width, float epsilon);
  /// dx for the gradient g of the result; adds to dweight and dbias. weight, dweight, dbias may be null. dx
  /// may be x or g.
  void (*backward)(const float* x, const float* g, const float* weight, float* dx, float* dweight,
                   float* dbias, int64_t rows, int64_t width, float epsilon);
};

struct NormMath {
  const char* name;
  NormLoops near;
  /// For more than the caches hold, the same arithmetic: the next rows are fetched while these are computed,
  /// and y or dx goes past the caches. Its rows begin at multiples of 64 bytes.
  NormLoops far;
};

/// Those that this CPU can run, the fastest first; there is always one.
std::span<const NormMath* const> norm_maths();

// One file each, compiled for that CPU.
const NormMath& norm_math_avx512();
const NormMath& norm_math_avx2();
const NormMath& norm_math_baseline();

}  // namespace millrace::cpu
