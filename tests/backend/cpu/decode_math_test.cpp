#include "backend/cpu/kernels/decode/decode_math.h"

#include <bit>
#include <cmath>
#include <doctest/doctest.h>

#include <millrace/array.h>

#include "support/codegen_support.h"

using namespace millrace;
using namespace millrace::cpu;

namespace {

double dot(const Array& a, int64_t i, const Array& b, int64_t j, int64_t k) {
  double sum = 0;
  for (int64_t l = 0; l < k; ++l) sum += a.at(i * k + l) * b.at(j * k + l);
  return sum;
}

}  // namespace

TEST_CASE(
    "products that read their matrix once agree with sums in f64, and rows with those of one row alone") {
  for (const DecodeMath* math : decode_maths())
    for (const int64_t k : {1, 15, 16, 33, 100})
      for (int64_t m = 1; m <= 8; ++m) {
        CAPTURE(math->name);
        CAPTURE(k);
        CAPTURE(m);
        const int64_t n = 21, first = 3, last = 20;
        const Array x = random_array({f32, {m, k}}, 1), w = random_array({f32, {n, k}}, 2);
        Array y = Array::full(f32, {m, n}, 77);
        math->product(x.as<float>().data(), w.as<float>().data(), y.as<float>().data(), m, k, n, first, last);
        for (int64_t i = 0; i < m; ++i) {
          Array alone(f32, {1, n});
          math->product(x.as<float>().data() + i * k, w.as<float>().data(), alone.as<float>().data(), 1, k, n,
                        first, last);
          for (int64_t j = 0; j < n; ++j) {
            const bool in = j >= first && j < last;
            CHECK(y.at(i * n + j) ==
                  (in ? doctest::Approx(dot(x, i, w, j, k)).epsilon(1e-4) : doctest::Approx(77)));
            if (in) CHECK(y.at(i * n + j) == alone.at(j));
          }
        }
      }
}

namespace {

/// Of matrices with more numbers from row to row than they have columns: none of those are touched.
template <typename T>
void check_columns_product(const ColumnsMath<T>& math, DType dtype, int64_t m, int64_t k, int64_t n) {
  const int64_t x_step = k + 3, w_step = n + 5, y_step = n + 2;
  const Array x = random_array({f32, {m, x_step}}, 1).converted(dtype),
              w = random_array({f32, {k, w_step}}, 2).converted(dtype);
  Array y = Array::full(f32, {m, y_step}, 77), alone = Array::full(f32, {1, n}, 77);
  const auto run = [&](int64_t row, int64_t rows, Array& to, int64_t step) {
    math.product(x.as<T>().data() + row * x_step, x_step, w.as<T>().data(), w_step, to.as<float>().data(),
                 step, rows, k, n);
  };
  run(0, m, y, y_step);
  for (int64_t i = 0; i < m; ++i) {
    run(i, 1, alone, n);
    for (int64_t j = 0; j < y_step; ++j) {
      double exact = 0;
      for (int64_t l = 0; l < k; ++l) exact += x.at(i * x_step + l) * w.at(l * w_step + j);
      CHECK(y.at(i * y_step + j) == doctest::Approx(j < n ? exact : 77).epsilon(1e-4));
      if (j < n) CHECK(y.at(i * y_step + j) == alone.at(j));
    }
  }
}

}  // namespace

TEST_CASE("products of a matrix as it lies agree with sums in f64, and rows with those of one row alone") {
  for (const DecodeMath* math : decode_maths())
    for (const int64_t k : {1, 3, 4, 7, 30})
      for (const int64_t n : {1, 15, 16, 37})
        for (int64_t m = 1; m <= 9; ++m) {
          CAPTURE(math->name);
          CAPTURE(k);
          CAPTURE(n);
          CAPTURE(m);
          check_columns_product(math->float_columns, f32, m, k, n);
          check_columns_product(math->half_columns, bf16, m, k, n);
        }
}

TEST_CASE("parts are added in order, and in bf16 rounded to the nearest, as one number is") {
  const int64_t n = 37, step = 40;
  Array parts = random_array({f32, {3, step}}, 4);
  // Ties to even, up and down; what is no number, infinite, and becomes infinite by rounding.
  const float odd[] = {0x1.01p0F, 0x1.03p0F, -0x1.01p0F,  NAN,           std::bit_cast<float>(0x7fffffffU),
                       INFINITY,  -INFINITY, 0x1.ffp127F, 0x1.010002p0F, 1e-40F};
  for (const int64_t first : {0, 27})  // within whole vectors, and behind them
    for (int64_t i = 0; i < 10; ++i)
      for (int64_t part = 0; part < 3; ++part) parts.set(part * step + first + i, part == 0 ? odd[i] : 0);
  for (const DecodeMath* math : decode_maths())
    for (const int64_t count : {1, 3}) {
      CAPTURE(math->name);
      CAPTURE(count);
      Array sums = Array::full(f32, {step}, 77), halves = Array::full(f32, {step}, 77).converted(bf16);
      const float* const from = parts.as<float>().data();
      math->float_columns.add_parts(from, count, step, n, sums.as<float>().data());
      math->half_columns.add_parts(from, count, step, n, halves.as<uint16_t>().data());
      for (int64_t i = 0; i < step; ++i) {
        float sum = from[i];
        for (int64_t part = 1; part < count; ++part) sum += from[part * step + i];
        if (i >= n) sum = 77;
        const auto at = static_cast<size_t>(i);
        CHECK((sums.as<float>()[at] == sum || (std::isnan(sum) && std::isnan(sums.as<float>()[at]))));
        CHECK(halves.as<uint16_t>()[at] == float_to_bf16(sum));
      }
    }
}

TEST_CASE("products of bf16 agree with sums in f64") {
  const auto product = decode_maths().front()->halves_product;
  if (!product) return;
  for (const int64_t k : {1, 31, 32, 70, 128})
    for (const int64_t m : {1, 2, 3, 5, 8}) {
      CAPTURE(k);
      CAPTURE(m);
      const int64_t n = 19;
      const Array x = random_array({f32, {m, k}}, 1).converted(bf16),
                  w = random_array({f32, {n, k}}, 2).converted(bf16);
      Array y(bf16, {m, n});
      product(x.as<uint16_t>().data(), w.as<uint16_t>().data(), y.as<uint16_t>().data(), m, k, n, 0, n);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          const double exact = dot(x, i, w, j, k);
          CHECK(std::abs(y.at(i * n + j) - exact) <= std::abs(exact) / 256 + 1e-5);
        }
    }
}
