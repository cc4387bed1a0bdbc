// The arithmetic of steps that have a few rows: products that read their weights once, and attention over
// pages, once for each kind of CPU.
#pragma once

#include <cstdint>
#include <span>

namespace millrace::cpu {

/// Of numbers stored as T: float, or uint16_t for bf16.
template <typename T>
struct PageMath {
  /// scores[j] = Σ q[i] · keys[j · row + i] for `count` keys, a multiple of 16.
  void (*scores)(const float* q, const T* keys, int64_t row, int64_t width, int64_t count, float* scores);
  /// sum[i] += Σ weights[j] · values[j · row + i] over `count` values.
  void (*mix)(const float* weights, const T* values, int64_t row, int64_t width, int64_t count, float* sum);
};

/// Products with a matrix as it lies, in parts; of numbers stored as T.
template <typename T>
struct ColumnsMath {
  /// y(i, j) = Σ x(i, l) · w(l, j), each matrix with so many numbers from row to row; k > 0. The order of the
  /// sums depends on k alone.
  void (*product)(const T* x, int64_t x_step, const T* w, int64_t w_step, float* y, int64_t y_step, int64_t m,
                  int64_t k, int64_t n);
  /// y[i] = Σ parts[part · step + i], in order; of bf16 rounded to the nearest.
  void (*add_parts)(const float* parts, int64_t count, int64_t step, int64_t n, T* y);
};

struct DecodeMath {
  const char* name;
  /// y(i, j) = Σ x(i, l) · w(j, l) for rows [first, last) of w [n × k], of all rows of x [m × k], at most 8;
  /// y is [m × n]. A row's sums do not depend on how many rows there are.
  void (*product)(const float* x, const float* w, float* y, int64_t m, int64_t k, int64_t n, int64_t first,
                  int64_t last);
  /// The same of bf16, with sums in f32; y is rounded to the nearest. Null where the CPU has no instructions
  /// for it.
  void (*halves_product)(const uint16_t* x, const uint16_t* w, uint16_t* y, int64_t m, int64_t k, int64_t n,
                         int64_t first, int64_t last);
  /// Turns scores into exp(score · scale − the highest), and gives their sum. `count` > 0; up to the next
  /// multiple of 16 they are written to.
  float (*softmax)(float* scores, int64_t count, float scale);
  ColumnsMath<float> float_columns;
  ColumnsMath<uint16_t> half_columns;
  PageMath<float> floats;
  PageMath<uint16_t> halves;
};

/// Those that this CPU can run, the fastest first; there is always one.
std::span<const DecodeMath* const> decode_maths();

// One file each, compiled for that CPU.
const DecodeMath& decode_math_bf16_avx512();
const DecodeMath& decode_math_avx512();
const DecodeMath& decode_math_avx2();
const DecodeMath& decode_math_baseline();

}  // namespace millrace::cpu
