#include <algorithm>

#include "backend/cpu/kernels/gemm/arithmetic.h"
#include "backend/cpu/kernels/gemm/tap_order.h"
#include "backend/cpu/kernels/winograd/arithmetic_bf16.h"
#include "backend/cpu/kernels/winograd/kernels.h"
#include "base/format.h"

namespace millrace::cpu::winograd {
namespace {

using gemm::Unit;
using namespace narrow;

constexpr int64_t panel = gemm::block_columns;
constexpr int64_t group = 2 * gemm::depth;  // tiles that are summed over at a time
constexpr int64_t half = 8;                 // rows of a block: half of the 16 channels that a transform gives
// Units of 16 channels of dy, and of a panel of x. Not powers of two: the points of a tile must fall into
// different cache sets.
constexpr int64_t left_size = gemm::depth * 16 + 16, right_size = gemm::depth * panel + 16;

// The sum over all tiles of (A dy Aᵀ) ⊙ (Bᵀ x B) is, point by point, a product of two matrices: of the
// transformed tiles of dy, turned round, and of those of x. All threads transform some groups of tiles, then
// add their products to one sum, a few rows of a point each.
class WeightGradient : public Kernel {
 public:
  explicit WeightGradient(const Geometry& g)
      : g_(g),
        arithmetic_(gemm::arithmetic_bf16()),
        order_(arithmetic_, 9),
        grid_(grid_of(g.images, g.out_height, g.out_width, tile)),
        sixteens_((g.out_channels + 15) / 16),
        panels_((g.in_channels + panel - 1) / panel) {
    // What is transformed at a time should stay in the third-level cache, though others use it too.
    groups_ = std::clamp<int64_t>((1 << 20) / (left_units() + right_units()), 1, 8);
    groups_ = std::min(groups_, (grid_.count() + group - 1) / group);
    rows_ = std::clamp<int64_t>(sixteens_ / 4, 1, 8);
  }

  void run(void* const* operands, void* const* results, void* scratch, DeviceContext device) override {
    auto* const sums = static_cast<float*>(scratch);
    Unit* const z = static_cast<Unit*>(scratch) + sum_size();
    Unit* const v = z + groups_ * left_units();
    for (int64_t first = 0; first < grid_.count(); first += groups_ * group) {
      const int64_t count = std::min(groups_ * group, grid_.count() - first);
      device.threads().parallel((count + few - 1) / few, [&](int64_t chunk) {
        transform(static_cast<uint16_t*>(operands[0]), static_cast<uint16_t*>(operands[1]), v, z, first,
                  chunk * few, std::min((chunk + 1) * few, count));
      });
      const int64_t parts = (sixteens_ + rows_ - 1) / rows_;
      device.threads().parallel(points * parts, [&](int64_t chunk) {
        add_products(z, v, sums, chunk / parts, chunk % parts * rows_, count, first > 0);
      });
    }
    device.threads().parallel((g_.out_channels + result_rows - 1) / result_rows, [&](int64_t chunk) {
      finish(sums, static_cast<uint16_t*>(results[0]), chunk);
    });
  }

  int64_t scratch_bytes() const override {
    return 4 * (sum_size() + groups_ * (left_units() + right_units()));
  }
  std::string description() const override {
    return fmt::format("F(2×2, 3×3), {} tiles × {} × {}, {} tiles at a time", grid_.count(), g_.out_channels,
                       g_.in_channels, groups_ * group);
  }

 private:
  int64_t row_length() const { return panels_ * panel; }
  int64_t sum_size() const { return points * sixteens_ * 16 * row_length(); }
  // Of one group: [point][16 channels][unit][16] of dy, [point][panel][unit][32] of x.
  int64_t left_units() const { return points * sixteens_ * left_size; }
  int64_t right_units() const { return points * panels_ * right_size; }

  static constexpr int64_t few = 16;  // tiles
  /// Tiles [begin, end) of those from `first` on, two by two.
  void transform(uint16_t* x, uint16_t* dy, Unit* v, Unit* z, int64_t first, int64_t begin,
                 int64_t end) const {
    for (int64_t t = begin; t < end; t += 2) {
      const bool two = t + 1 < end;
      const TilePlace a = place_of(grid_, first + t), b = place_of(grid_, first + (two ? t + 1 : t));
      const int64_t g = t / group, unit = t % group / 2;
      transform_gradient_pair(gradient(dy, a), gradient(dy, b), two, z + g * left_units() + unit * 16,
                              sixteens_ * left_size, left_size, 2 * left_size);
      // A panel holds two sixteens side by side.
      transform_input_pair(input(x, a), input(x, b), two, v + g * right_units() + unit * panel,
                           panels_ * right_size, 16, right_size);
    }
  }

  Spot input(uint16_t* x, const TilePlace& at) const {
    return {{x + at.image * g_.in_height * g_.in_width * g_.in_channels, g_.in_height, g_.in_width,
             g_.in_channels},
            at.row - g_.top,
            at.column - g_.left};
  }
  Spot gradient(uint16_t* dy, const TilePlace& at) const {
    return {{dy + at.image * g_.out_height * g_.out_width * g_.out_channels, g_.out_height, g_.out_width,
             g_.out_channels},
            at.row,
            at.column};
  }

  /// Rows of `rows_` sixteens at one point.
  void add_products(const Unit* z, const Unit* v, float* sums, int64_t point, int64_t begin, int64_t count,
                    bool add) const {
    const int64_t end = std::min(begin + rows_, sixteens_);
    for (int64_t g = 0; g * group < count; ++g) {
      const int64_t units = (std::min(group, count - g * group) + 1) / 2;
      const Unit* const left = z + g * left_units() + point * sixteens_ * left_size;
      const Unit* const right = v + g * right_units() + point * panels_ * right_size;
      for (int64_t n = 0; n < panels_; ++n)
        for (int64_t r = 16 * begin; r < 16 * end; r += half)
          arithmetic_.multiply({.a = left + r / 16 * left_size + r % 16,
                                .by_rows = false,
                                .b = right + n * right_size,
                                .units = units,
                                .rows = half,
                                .columns = panel,
                                .c = sums + (point * sixteens_ * 16 + r) * row_length() + n * panel,
                                .ldc = row_length(),
                                .add = add || g > 0});
    }
  }

  static constexpr int64_t result_rows = 4;
  void finish(const float* sums, uint16_t* w, int64_t chunk) const {
    constexpr int64_t most = 512;
    uint16_t taps[9 * most];
    const int64_t last = std::min((chunk + 1) * result_rows, g_.out_channels);
    for (int64_t o = chunk * result_rows; o < last; ++o)
      for (int64_t begin = 0; begin < g_.in_channels; begin += most) {
        const int64_t count = std::min(most, g_.in_channels - begin);
        transform_weight_gradient(sums + o * row_length() + begin, sixteens_ * 16 * row_length(), count, taps,
                                  most);
        order_.inwards(taps, most, w + (o * g_.in_channels + begin) * 9, count);
      }
  }

  Geometry g_;
  const gemm::Arithmetic& arithmetic_;
  gemm::TapOrder order_;
  TileGrid grid_;
  int64_t sixteens_, panels_;      // of the channels of dy, of x
  int64_t groups_ = 1, rows_ = 1;  // transformed at a time; sixteens of a chunk of products
};

}  // namespace

std::unique_ptr<Kernel> build_weight_gradient_bf16(const KernelRequest& request) {
  return std::make_unique<WeightGradient>(geometry_of(request.graph, request.node));
}

}  // namespace millrace::cpu::winograd
