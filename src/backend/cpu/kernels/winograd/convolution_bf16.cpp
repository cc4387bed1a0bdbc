#include <algorithm>
#include <vector>

#include <millrace/operator.h>

#include "backend/cpu/kernels/epilogue.h"
#include "backend/cpu/kernels/gemm/arithmetic.h"
#include "backend/cpu/kernels/gemm/tap_order.h"
#include "backend/cpu/kernels/winograd/arithmetic_bf16.h"
#include "backend/cpu/kernels/winograd/kernels.h"
#include "base/format.h"
#include "target/shared_constants.h"
#include "target/slot.h"

namespace millrace::cpu::winograd {
namespace {

using gemm::Unit;
using namespace narrow;

constexpr int64_t panel = gemm::block_columns;

// Tiles that stay in the second-level cache, but enough chunks for many threads.
int64_t chunk_tiles(const Problem& p, int64_t tiles) {
  const int64_t fit = std::clamp<int64_t>(14336 / p.depth / 14 * 14, 14, 112),
                least = std::max<int64_t>((tiles + 15) / 16, 14);
  return std::min(fit, (least + 13) / 14 * 14);
}

// Weights are transformed and packed, point by point, in two stages; then each chunk transforms its tiles of
// x, multiplies them with a panel of weights at every point, and transforms what comes out.
class Convolution : public TiledConvolution {
 public:
  Convolution(const Problem& p, const Array* weights, const Epilogue& epilogue)
      : TiledConvolution(p, tile, chunk_tiles, epilogue),
        arithmetic_(gemm::arithmetic_bf16()),
        order_(arithmetic_, 9),
        units_((p.depth + 1) / 2),
        panels_((p.channels + panel - 1) / panel) {
    if (weights)
      packed_ = {shared_form(*weights, fmt::format("winograd bf16 {}", p.flipped), {f32, {packed_units()}},
                             [&](Array& packed) { pack_constant(*weights, packed); })};
  }

  std::unique_ptr<Kernel> another() const override { return std::make_unique<Convolution>(*this); }
  int stages() const override { return packed_.empty() ? 3 : 1; }
  int64_t chunks(int stage) const override {
    switch (stages() - stage) {
      case 3:
        return (weight_rows() + rows_a_chunk - 1) / rows_a_chunk;
      case 2:
        return points * panels_;
      default:
        return tile_chunks();
    }
  }
  double nanoseconds() const override {
    return 32.0 * static_cast<double>(grid_.count() * p_.depth * p_.channels) / 160;
  }

  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    auto* const packed = static_cast<Unit*>(scratch);
    Unit* const transformed = packed + (packed_.empty() ? packed_units() : 0);
    switch (stages() - stage) {
      case 3:
        return transform(operands[1], reinterpret_cast<uint16_t*>(transformed), chunk);
      case 2:
        return pack(reinterpret_cast<const uint16_t*>(transformed), packed, chunk);
      default:
        break;
    }
    convolve_chunk(operands, results, scratch, chunk);
  }

  int64_t scratch_bytes() const override {
    return (packed_.empty() ? 4 * (packed_units() + transformed_units()) : 0) + slots_bytes();
  }
  int64_t slots_bytes() const override { return 4 * slots_.count() * slot_units(); }
  std::string description() const override {
    return fmt::format("F(2×2, 3×3){}, {} tiles × {} × {} in {} chunks", packed_.empty() ? "" : " packed",
                       grid_.count(), p_.depth, p_.channels, tile_chunks());
  }

 private:
  // Of the weights as the user has them: [rows, columns, taps].
  int64_t weight_rows() const { return p_.flipped ? p_.depth : p_.channels; }
  int64_t weight_columns() const { return p_.flipped ? p_.channels : p_.depth; }
  int64_t packed_units() const { return points * panels_ * units_ * panel; }
  int64_t transformed_units() const { return gemm::round_up(points * p_.depth * p_.channels / 2 + 1, 16); }
  int64_t left_units() const { return points * tiles_ * gemm::row_step; }
  // Padded, as the rows of the left side are: the points of a tile must fall into different cache sets.
  int64_t point_size() const { return tiles_ * panel + 16; }
  int64_t slot_units() const { return left_units() + points * point_size(); }

  static constexpr int64_t rows_a_chunk = 8;
  /// to[point][row][column] of [row][column][tap]
  void transform(const void* weights, uint16_t* to, int64_t chunk) const {
    uint16_t taps[9 * 512];
    const int64_t columns = weight_columns();
    for (int64_t row = chunk * rows_a_chunk; row < std::min((chunk + 1) * rows_a_chunk, weight_rows()); ++row)
      for (int64_t begin = 0; begin < columns; begin += 512) {
        const int64_t count = std::min<int64_t>(512, columns - begin);
        order_.outwards(static_cast<const uint16_t*>(weights) + (row * columns + begin) * 9, taps, 512,
                        count);
        transform_weights(taps, 512, p_.flipped, count, to + row * columns + begin, weight_rows() * columns);
      }
  }

  /// to[point][panel][unit][32]
  void pack(const uint16_t* from, Unit* to, int64_t chunk) const {
    const int64_t n = chunk % panels_ * panel, count = std::min(panel, p_.channels - n),
                  columns = weight_columns();
    const uint16_t* const matrix = from + chunk / panels_ * weight_rows() * columns;
    to += chunk * units_ * panel;
    if (!p_.flipped) {
      arithmetic_.pack_columns(matrix + n * columns, columns, count, p_.depth, to);
      return;
    }
    const char* rows[512];
    for (int64_t k = 0; k < p_.depth; ++k) rows[k] = reinterpret_cast<const char*>(matrix + k * columns);
    arithmetic_.pack_rows(rows, n * 2, p_.depth, count, to, panel);
  }

  void pack_constant(const Array& weights, Array& packed) const {
    std::vector<uint16_t> transformed(static_cast<size_t>(2 * transformed_units()));
    for (int64_t i = 0; i * rows_a_chunk < weight_rows(); ++i)
      transform(weights.data(), transformed.data(), i);
    auto* const to = static_cast<Unit*>(packed.data());
    for (int64_t i = 0; i < points * panels_; ++i) pack(transformed.data(), to, i);
  }

  /// Tiles [first, last): v[point][tile][row_step], m[point][tile][32]
  void convolve(void* const* operands, void* const* results, void* scratch, int64_t first,
                int64_t last) override {
    const Slot slot(slots_);
    auto* const memory = static_cast<Unit*>(scratch);
    auto* const x = static_cast<uint16_t*>(operands[0]);
    auto* const y = static_cast<uint16_t*>(results[0]);
    const Epilogue::At rest = epilogue_.at(operands, 0, 0);
    const OutputEnd end{rest.bias, reinterpret_cast<const uint16_t*>(rest.added), epilogue_.low,
                        epilogue_.high};
    const Unit* const u = packed_.empty() ? memory : static_cast<const Unit*>(packed_[0].data());
    Unit* const v =
        memory + (packed_.empty() ? packed_units() + transformed_units() : 0) + slot.index() * slot_units();
    const int64_t count = last - first;
    auto* const m = reinterpret_cast<float*>(v + left_units());
    for (int64_t t = 0; t < count; ++t) {
      const TilePlace at = place_of(grid_, first + t);
      const Picture from{x + at.image * p_.in_height * p_.in_width * p_.depth, p_.in_height, p_.in_width,
                         p_.depth};
      transform_input(from, at.row - p_.top, at.column - p_.left,
                      reinterpret_cast<uint16_t*>(v + t * gemm::row_step), 2 * tiles_ * gemm::row_step);
    }
    const int64_t step = gemm::ahead_step(gemm::blocks_of(count), panel);
    for (int64_t n = 0; n < panels_; ++n) {
      for (int64_t point = 0; point < points; ++point) {
        const Unit* const right = u + (point * panels_ + n) * units_ * panel;
        const Unit* const next = point + 1 < points ? right + panels_ * units_ * panel
                                 : n + 1 < panels_  ? u + (n + 1) * units_ * panel
                                                    : right;
        const char* ahead = reinterpret_cast<const char*>(next);
        for (int64_t t = 0; t < count; t += gemm::block_rows, ahead += units_ * step)
          arithmetic_.multiply({.a = v + (point * tiles_ + t) * gemm::row_step,
                                .by_rows = true,
                                .b = right,
                                .units = units_,
                                .rows = std::min(gemm::block_rows, count - t),
                                .columns = panel,
                                .c = m + point * point_size() + t * panel,
                                .ldc = panel,
                                .add = false,
                                .ahead = {ahead, step}});
      }
      for (int64_t t = 0; t < count; ++t) {
        const TilePlace at = place_of(grid_, first + t);
        const Picture to{y + at.image * p_.out_height * p_.out_width * p_.channels, p_.out_height,
                         p_.out_width, p_.channels};
        transform_output(m + t * panel, point_size(), to, at.row, at.column, n * panel,
                         std::min(panel, p_.channels - n * panel), end_of(end, at.image));
      }
    }
  }

  const gemm::Arithmetic& arithmetic_;
  gemm::TapOrder order_;
  int64_t units_, panels_;
};

}  // namespace

std::unique_ptr<Kernel> build_convolution_bf16(const KernelRequest& request) {
  return std::make_unique<Convolution>(
      problem_of(request), request.graph.constant_value(request.node.operands[1]), epilogue_of(request.node));
}

}  // namespace millrace::cpu::winograd
