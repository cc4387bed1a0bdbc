#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/winograd/arithmetic.h"
#include "backend/cpu/kernels/winograd/kernels.h"
#include "base/format.h"
#include "target/slot.h"

namespace millrace::cpu::winograd {
namespace {

constexpr int64_t most_depth = 128;  // of a product, so that a panel stays in the first-level cache

// The sum over all tiles of (Bᵀ x B) ⊙ (A dy Aᵀ) is, point by point, a product of two matrices: of the
// transformed tiles of x, turned round, and of those of dy. Few channels: segments of tiles have sums of
// their own, which stay in the cache. Many: all threads transform a group of tiles, then add its products to
// one sum, a few rows each.
class WeightGradient : public Kernel {
 public:
  explicit WeightGradient(const Geometry& g)
      : g_(g),
        arithmetic_(arithmetic_f32()),
        grid_(grid_of(g.images, g.out_height, g.out_width, tile)),
        v_row_(g.in_channels % 256 == 0 ? g.in_channels + 16 : (g.in_channels + 15) / 16 * 16),
        z_row_(arithmetic_.whole_panels(g.out_channels) +
               (g.out_channels % 128 == 0 ? arithmetic_.panel : 0)),
        d_row_(arithmetic_.whole_panels(g.out_channels)),
        segmented_(g.in_channels * g.out_channels <= 128 * 64) {
    segments_ = segmented_ ? std::clamp<int64_t>(grid_.count() / 128, 1, 8) : 1;
    group_ = segmented_ ? 28 : std::min<int64_t>(grid_.count(), 256);
    v_point_ = group_ * v_row_ + cache_line;
    z_point_ = group_ * z_row_ + cache_line;
    d_point_ = g.in_channels * d_row_;
    slots_ = segmented_ ? Slots(segments_) : Slots();
  }

  std::unique_ptr<Kernel> another() const override { return std::make_unique<WeightGradient>(*this); }
  void run(void* const* operands, void* const* results, void* scratch, DeviceContext device) override {
    auto* x = static_cast<float*>(operands[0]);
    auto* dy = static_cast<float*>(operands[1]);
    auto* sums = static_cast<float*>(scratch);
    float* tiles = sums + segments_ * sum_size();
    device.threads().parallel(segments_ * points, [&](int64_t part) {
      std::memset(sums + part * (sum_size() / points), 0,
                  static_cast<size_t>(sum_size() / points) * sizeof(float));
    });
    if (segmented_)
      device.threads().parallel(segments_, [&](int64_t s) {
        const Slot slot(slots_);
        add_segment(x, dy, tiles + slot.index() * group_size(), sums + s * sum_size(), s);
      });
    else
      for (int64_t first = 0; first < grid_.count(); first += group_)
        add_group(x, dy, tiles, sums, first, device);
    auto* w = static_cast<float*>(results[0]);
    device.threads().parallel((g_.in_channels + result_rows - 1) / result_rows,
                              [&](int64_t part) { finish(sums, w, part); });
  }

  int64_t scratch_bytes() const override {
    return 4 * (segments_ * sum_size() + slots_.count() * group_size());
  }
  int64_t slots_bytes() const override { return segmented_ ? 4 * slots_.count() * group_size() : 0; }

  std::string description() const override {
    return fmt::format(
        "F(4×4, 3×3), {} tiles × {} × {}, {}", grid_.count(), g_.in_channels, g_.out_channels,
        segmented_ ? fmt::format("{} partial sums", segments_) : fmt::format("{} tiles at a time", group_));
  }

 private:
  int64_t sum_size() const { return points * d_point_; }
  int64_t group_size() const { return points * (v_point_ + z_point_); }

  /// v[point][tile][in channel], z[point][tile][out channel] of one tile.
  void transform(float* x, float* dy, float* v, float* z, int64_t index, int64_t t) const {
    const TilePlace at = place_of(grid_, index);
    const Picture from{x + at.image * g_.in_height * g_.in_width * g_.in_channels, g_.in_height, g_.in_width,
                       g_.in_channels};
    arithmetic_.three.input(from, at.row - g_.top, at.column - g_.left, v + t * v_row_, v_point_);
    const Picture gradient{dy + at.image * g_.out_height * g_.out_width * g_.out_channels, g_.out_height,
                           g_.out_width, g_.out_channels};
    arithmetic_.gradient(gradient, at.row, at.column, z + t * z_row_, z_point_);
  }

  /// Adds the products of `count` tiles for channels [begin, end) of x at one point.
  void add_products(const float* v, const float* z, float* sum, int64_t point, int64_t begin, int64_t end,
                    int64_t count) const {
    for (int64_t n = 0; n < d_row_; n += arithmetic_.panel)
      for (int64_t t = 0; t < count; t += most_depth)
        arithmetic_.multiply_transposed(v + point * v_point_ + t * v_row_ + begin, v_row_,
                                        z + point * z_point_ + t * z_row_ + n, z_row_, end - begin,
                                        std::min(most_depth, count - t),
                                        sum + point * d_point_ + begin * d_row_ + n, d_row_);
  }

  void add_segment(float* x, float* dy, float* v, float* sum, int64_t segment) const {
    float* z = v + points * v_point_;
    const int64_t begin = grid_.count() * segment / segments_,
                  end = grid_.count() * (segment + 1) / segments_;
    clear_padding(z);
    for (int64_t first = begin; first < end; first += group_) {
      const int64_t count = std::min(group_, end - first);
      for (int64_t t = 0; t < count; ++t) transform(x, dy, v, z, first + t, t);
      for (int64_t point = 0; point < points; ++point)
        add_products(v, z, sum, point, 0, g_.in_channels, count);
    }
  }

  void add_group(float* x, float* dy, float* v, float* sum, int64_t first, DeviceContext device) const {
    float* z = v + points * v_point_;
    const int64_t count = std::min(group_, grid_.count() - first);
    constexpr int64_t few = 8, rows = 126;
    if (first == 0) clear_padding(z);
    device.threads().parallel((count + few - 1) / few, [&](int64_t chunk) {
      for (int64_t t = chunk * few; t < std::min((chunk + 1) * few, count); ++t)
        transform(x, dy, v, z, first + t, t);
    });
    const int64_t parts = (g_.in_channels + rows - 1) / rows;
    device.threads().parallel(points * parts, [&](int64_t chunk) {
      const int64_t begin = chunk % parts * rows;
      add_products(v, z, sum, chunk / parts, begin, std::min(begin + rows, g_.in_channels), count);
    });
  }

  /// Columns that no transform writes take part in products, so they must be numbers.
  void clear_padding(float* z) const {
    const int64_t written = arithmetic_.whole_vectors(g_.out_channels);
    if (written >= d_row_) return;
    for (int64_t point = 0; point < points; ++point)
      for (int64_t t = 0; t < group_; ++t) {
        float* const row = z + point * z_point_ + t * z_row_;
        std::fill(row + written, row + d_row_, 0.0F);
      }
  }

  static constexpr int64_t result_rows = 4;
  void finish(float* sums, float* w, int64_t part) const {
    const int64_t begin = part * result_rows, rows = std::min(result_rows, g_.in_channels - begin);
    for (int64_t s = 1; s < segments_; ++s)
      for (int64_t point = 0; point < points; ++point) {
        const int64_t at = point * d_point_ + begin * d_row_;
        const float* from = sums + s * sum_size() + at;
        for (int64_t i = 0; i < rows * d_row_; ++i) sums[at + i] += from[i];
      }
    arithmetic_.weight_gradient(sums + begin * d_row_, d_point_, d_row_, rows, g_.out_channels, w + begin * 9,
                                9, 9 * g_.in_channels);
  }

  Geometry g_;
  const Arithmetic& arithmetic_;
  TileGrid grid_;
  int64_t v_row_, z_row_, d_row_;
  int64_t v_point_ = 0, z_point_ = 0, d_point_ = 0;
  bool segmented_;
  int64_t segments_ = 1, group_ = 1;
  Slots slots_;
};

}  // namespace

std::unique_ptr<Kernel> build_weight_gradient(const KernelRequest& request) {
  return std::make_unique<WeightGradient>(geometry_of(request.graph, request.node));
}

}  // namespace millrace::cpu::winograd
