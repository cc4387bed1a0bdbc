#include "ops/convolution.h"

#include <algorithm>

#include <millrace/operator.h>

#include "backend/cpu/kernels/epilogue.h"
#include "backend/cpu/kernels/vectors.h"
#include "backend/cpu/kernels/winograd/arithmetic.h"
#include "backend/cpu/kernels/winograd/kernels.h"
#include "base/format.h"
#include "target/shared_constants.h"
#include "target/slot.h"

namespace millrace::cpu::winograd {

namespace {

const Arithmetic* given = nullptr;

}  // namespace

const Arithmetic& arithmetic_f32() {
  if (given) return *given;
  return has_avx512() ? arithmetic_avx512() : arithmetic_avx2();
}

void set_arithmetic_f32(const Arithmetic* arithmetic) { given = arithmetic; }

TileGrid grid_of(int64_t images, int64_t height, int64_t width, int64_t side) {
  return {(height + side - 1) / side, (width + side - 1) / side, images, side};
}

TilePlace place_of(const TileGrid& grid, int64_t index) {
  const int64_t column = index % grid.columns, rest = index / grid.columns;
  return {rest / grid.rows, rest % grid.rows * grid.side, column * grid.side};
}

Problem problem_of(const KernelRequest& request) {
  const Geometry g = geometry_of(request.graph, request.node);
  const int64_t window = g.kernel_height, taps = window * window, across = taps * g.in_channels;
  if (ops::convolution_part(request.node) == ops::ConvolutionPart::forward)
    return {g.images, g.in_channels, g.out_channels, g.in_height, g.in_width, g.out_height, g.out_width,
            g.top,    g.left,        taps,           across,      false,      window};
  return {g.images,   g.out_channels,     g.in_channels,       g.out_height, g.out_width, g.in_height,
          g.in_width, window - 1 - g.top, window - 1 - g.left, across,       taps,        true,
          window};
}

namespace {

constexpr int64_t block = 64;        // channels of y whose products are kept at a time, or all
constexpr int64_t most_depth = 256;  // of a product, so that a panel stays in the first-level cache

// Each chunk of tiles reads all transformed weights, which must cost little beside its products; and its own
// tiles should stay in the second-level cache.
int64_t chunk_tiles(const Problem& p, int64_t tiles) {
  const Arithmetic& arithmetic = arithmetic_f32();
  const int64_t weights = p.depth * p.channels, rows = arithmetic.block_rows,
                wished = arithmetic.chunk_blocks[weights <= 96 * 96     ? 0
                                                 : weights <= 192 * 192 ? 1
                                                                        : 2] *
                         rows;
  // Enough chunks for many threads, as far as that leaves whole blocks of rows; but where weights fill the
  // caches, not more than this machine has use for: each fetches them from memory.
  const int64_t chunks = weights <= 192 * 192 ? 16 : std::clamp<int64_t>(2 * available_cpus(), 4, 16);
  const int64_t least = std::max<int64_t>((tiles + chunks - 1) / chunks, 12);
  return std::min({wished, (least + rows - 1) / rows * rows, tiles});
}

class Convolution : public TiledConvolution {
 public:
  Convolution(const Problem& p, const Array* weights, const Epilogue& epilogue)
      : TiledConvolution(p, tile, chunk_tiles, epilogue),
        arithmetic_(arithmetic_f32()),
        filter_(p.window == 5 ? arithmetic_.five : arithmetic_.three),
        panel_(arithmetic_.panel),
        panels_(arithmetic_.whole_panels(p.channels) / panel_),
        block_(std::min(block, panels_ * panel_)),
        v_row_(p.depth % 256 == 0 ? p.depth + 16 : (p.depth + 15) / 16 * 16),
        v_point_(tiles_ * v_row_ + cache_line),
        m_point_(tiles_ * block_ + cache_line),
        u_point_(panels_ * p.depth * panel_ + cache_line) {
    if (!weights) return;
    packed_ = {shared_form(*weights, fmt::format("winograd {} f32 by {} {}", p.window, panel_, p.flipped),
                           {f32, {weights_size()}}, [&](Array& packed) {
                             auto* const to = static_cast<float*>(packed.data());
                             const auto* const from = static_cast<const float*>(weights->data());
                             for (int64_t c = 0; c < weight_chunks(); ++c) transform(from, to, c);
                           })};
  }

  std::unique_ptr<Kernel> another() const override { return std::make_unique<Convolution>(*this); }
  int stages() const override { return packed_.empty() ? 2 : 1; }
  int64_t chunks(int stage) const override { return stage + 1 < stages() ? weight_chunks() : tile_chunks(); }
  double nanoseconds() const override {
    return 2.0 * static_cast<double>(filter_.points * grid_.count() * p_.depth * p_.channels) / 80;
  }
  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    if (stage + 1 < stages())
      return transform(static_cast<const float*>(operands[1]), static_cast<float*>(scratch), chunk);
    convolve_chunk(operands, results, scratch, chunk);
  }

  int64_t scratch_bytes() const override {
    return (packed_.empty() ? 4 * weights_size() : 0) + slots_bytes();
  }
  int64_t slots_bytes() const override { return 4 * slots_.count() * slot_size(); }

  std::string description() const override {
    return fmt::format("F(4×4, {0}×{0}){1}, {2} tiles × {3} × {4} in {5} chunks", p_.window,
                       packed_.empty() ? "" : " packed", grid_.count(), p_.depth, p_.channels, tile_chunks());
  }

 private:
  const float* fixed() const { return static_cast<const float*>(packed_[0].data()); }
  int64_t weights_size() const { return filter_.points * u_point_; }
  int64_t slot_size() const { return filter_.points * (v_point_ + m_point_); }

  static constexpr int64_t weight_rows = 32;
  int64_t weight_chunks() const { return panels_ * ((p_.depth + weight_rows - 1) / weight_rows); }

  /// u[point][panel][depth][column of the panel]
  void transform(const float* w, float* u, int64_t chunk) const {
    const int64_t n = chunk % panels_, k = chunk / panels_ * weight_rows;
    filter_.weights(w + k * p_.row_stride + n * panel_ * p_.column_stride, p_.row_stride, p_.column_stride,
                    p_.flipped, std::min(weight_rows, p_.depth - k),
                    std::min(panel_, p_.channels - n * panel_), u + (n * p_.depth + k) * panel_, u_point_);
  }

  /// Tiles [first, last): v[point][tile][depth], m[point][tile][block]
  void convolve(void* const* operands, void* const* results, void* scratch, int64_t first,
                int64_t last) override {
    const Slot slot(slots_);
    auto* const memory = static_cast<float*>(scratch);
    auto* const x = static_cast<float*>(operands[0]);
    auto* const y = static_cast<float*>(results[0]);
    const Epilogue::At rest = epilogue_.at(operands, 0, 0);
    const OutputEnd end{rest.bias, reinterpret_cast<const float*>(rest.added), epilogue_.low, epilogue_.high};
    const float* const u = packed_.empty() ? memory : fixed();
    float* const v = memory + (packed_.empty() ? weights_size() : 0) + slot.index() * slot_size();
    const int64_t count = last - first;
    float* const m = v + filter_.points * v_point_;
    for (int64_t t = 0; t < count; ++t) {
      const TilePlace at = place_of(grid_, first + t);
      const Picture from{x + at.image * p_.in_height * p_.in_width * p_.depth, p_.in_height, p_.in_width,
                         p_.depth};
      filter_.input(from, at.row - p_.top, at.column - p_.left, v + t * v_row_, v_point_);
    }
    for (int64_t begin = 0; begin < p_.channels; begin += block_) {
      for (int64_t point = 0; point < filter_.points; ++point)
        for (int64_t n = begin; n < std::min(begin + block_, panels_ * panel_); n += panel_)
          multiply(v + point * v_point_, u + point * u_point_ + n * p_.depth, count,
                   m + point * m_point_ + n - begin);
      for (int64_t t = 0; t < count; ++t) {
        const TilePlace at = place_of(grid_, first + t);
        const Picture to{y + at.image * p_.out_height * p_.out_width * p_.channels, p_.out_height,
                         p_.out_width, p_.channels};
        filter_.output(m + t * block_, m_point_, to, at.row, at.column, begin,
                       std::min(block_, p_.channels - begin), end_of(end, at.image));
      }
    }
  }

  /// One panel of the products of `count` tiles.
  void multiply(const float* v, const float* u, int64_t count, float* m) const {
    for (int64_t k = 0; k < p_.depth; k += most_depth)
      arithmetic_.multiply(v + k, v_row_, u + k * panel_, count, std::min(most_depth, p_.depth - k), m,
                           block_, k > 0);
  }

  const Arithmetic& arithmetic_;
  const Filter& filter_;
  int64_t panel_, panels_, block_, v_row_, v_point_, m_point_, u_point_;
};

}  // namespace

std::unique_ptr<Kernel> build_convolution(const KernelRequest& request) {
  return std::make_unique<Convolution>(
      problem_of(request), request.graph.constant_value(request.node.operands[1]), epilogue_of(request.node));
}

}  // namespace millrace::cpu::winograd
