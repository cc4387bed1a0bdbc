#include "data/augment/warp.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels/vectors.h"
#include "data/augment/warp_loops.h"

namespace millrace::data {

const WarpLoops& warp_loops() {
  static const WarpLoops& best =
      *cpu::for_this_cpu(warp_loops_avx512, warp_loops_avx2, warp_loops_baseline).front();
  return best;
}

void warp(const Extent& extent, const uint8_t* in, uint8_t* out, const Projection& from, uint8_t fill) {
  warp_loops().warp(in, extent.channels, extent.height, extent.width, from.data(), fill, out);
}

Projection affine_projection(std::pair<double, double> centre, double angle, std::pair<double, double> move,
                             double scale, std::pair<double, double> shear) {
  constexpr double radians = 3.14159265358979323846 / 180;
  const double turn = angle * radians, sx = shear.first * radians, sy = shear.second * radians;
  const double a = std::cos(turn - sy) / std::cos(sy),
               b = -std::cos(turn - sy) * std::tan(sx) / std::cos(sy) - std::sin(turn),
               c = std::sin(turn - sy) / std::cos(sy),
               d = -std::sin(turn - sy) * std::tan(sx) / std::cos(sy) + std::cos(turn);
  // The inverse of turning, shearing and scaling, about the centre.
  const double x = -centre.first - move.first, y = -centre.second - move.second;
  return {d / scale,  -b / scale, (d * x - b * y) / scale + centre.first,
          -c / scale, a / scale,  (-c * x + a * y) / scale + centre.second,
          0,          0};
}

Projection perspective_projection(int height, int width,
                                  const std::array<std::pair<double, double>, 4>& corners) {
  const double right = width - 1, low = height - 1;
  const std::pair<double, double> start[4] = {{0, 0}, {right, 0}, {right, low}, {0, low}};
  // Eight linear equations, solved by elimination with the largest pivot.
  double rows[8][9];
  for (int i = 0; i < 4; ++i) {
    const auto [x, y] = corners[static_cast<size_t>(i)];
    const auto [sx, sy] = start[i];
    const double first[9] = {x, y, 1, 0, 0, 0, -sx * x, -sx * y, sx},
                 second[9] = {0, 0, 0, x, y, 1, -sy * x, -sy * y, sy};
    std::copy_n(first, 9, rows[2 * i]);
    std::copy_n(second, 9, rows[2 * i + 1]);
  }
  for (int k = 0; k < 8; ++k) {
    int best = k;
    for (int i = k + 1; i < 8; ++i)
      if (std::abs(rows[i][k]) > std::abs(rows[best][k])) best = i;
    std::swap(rows[k], rows[best]);
    // Corners on one line: there is no such map, and the picture stays.
    if (std::abs(rows[k][k]) < 1e-12) return {1, 0, 0, 0, 1, 0, 0, 0};
    for (int i = 0; i < 8; ++i) {
      if (i == k) continue;
      const double factor = rows[i][k] / rows[k][k];
      for (int j = k; j < 9; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  Projection result;
  for (size_t i = 0; i < 8; ++i) result[i] = rows[i][8] / rows[i][i];
  return result;
}

}  // namespace millrace::data
