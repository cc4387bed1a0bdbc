#include "ops/convolution.h"

#include <algorithm>

#include <millrace/operator.h>

#include "backend/cpu/kernels/gemm/packed_product.h"
#include "backend/cpu/kernels/gemm/tap_order.h"
#include "backend/cpu/kernels/gemm/taps.h"
#include "base/format.h"

namespace millrace::cpu::gemm {
namespace {

/// The gradient of x as the convolution of y's gradient with the weights turned round.
Geometry turned(const Geometry& g) {
  Geometry t = g;
  std::swap(t.in_channels, t.out_channels);
  std::swap(t.in_height, t.out_height);
  std::swap(t.in_width, t.out_width);
  t.top = (g.kernel_height - 1) * g.dilation_h - g.top;
  t.left = (g.kernel_width - 1) * g.dilation_w - g.left;
  return t;
}

/// Some of the sum: `taps` of them, of each the channels [begin, begin + count).
struct Part {
  int64_t tap, taps, begin, count;
};

// y[position, out] = sum over taps and channels of x[position moved by the tap, in] · w[tap, in, out].
// Weights have their taps moved outwards and are packed; then every chunk gathers its rows of the left side,
// part by part of the sum, unless they already lie one below the other.
class Convolution : public PackedProduct {
 public:
  /// `turns`: with the weights turned round.
  Convolution(const Geometry& g, bool turns, const Array* constant, const Epilogue& epilogue)
      : PackedProduct(
            product_arithmetic(g.dtype), 1, g.images * g.out_height * g.out_width, g.out_channels,
            choose_chunks(1, g.images * g.out_height * g.out_width, g.out_channels,
                          g.in_channels * g.kernel_height * g.kernel_width, product_arithmetic(g.dtype)),
            epilogue),
        g_(g),
        turns_(turns),
        window_(g),
        order_(arithmetic_, window_.count()),
        rows_are_pixels_(window_.count() == 1 && g.in_height == g.out_height && g.in_width == g.out_width &&
                         g.top == 0 && g.left == 0 && g.stride_h == 1 && g.stride_w == 1) {
    in_place_ =
        rows_are_pixels_ && arithmetic_.left_side != LeftSide::columns && may_lie(g.in_channels, arithmetic_);
    divide_sum();
    for (const Part& part : sum_) part_units_.push_back(part.taps * tap_units(part));
    if (constant)
      packed_ = {shared_form(*constant, fmt::format("gemm convolution {}", turns_), {f32, {right_units()}},
                             [&](Array& packed) { pack_constant(*constant, packed); })};
  }

  std::unique_ptr<Kernel> another() const override { return std::make_unique<Convolution>(*this); }
  int stages() const override { return packed_.empty() ? (moves_taps() ? 3 : 2) : 1; }
  int64_t chunks(int stage) const override {
    switch (stages() - stage) {
      case 3:
        return weight_rows();
      case 2:
        return pack_chunks();
      default:
        return result_chunks();
    }
  }
  double nanoseconds() const override { return g_.work() / arithmetic_.rate; }

  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    auto* const packed = static_cast<Unit*>(scratch);
    Unit* const moved = packed + (packed_.empty() ? right_units() : 0);
    switch (stages() - stage) {
      case 3:
        return move_taps(operands[1], moved, chunk);
      case 2:
        return pack_right(moves_taps() ? moved : operands[1], packed, chunk);
      default:
        break;
    }
    // A thread's chunks are mostly of the same rows: those that it made, and that it will read.
    const int64_t m = chunk / chunk_.parts * rows_;
    run_result_chunk(operands, results, scratch, m, std::min(rows_, m_ - m), chunk % chunk_.parts);
  }

  // Positions are rows; each takes of x what is around it, or one pixel.
  int64_t most_rows() const override { return m_; }
  bool takes_row(int operand) const override {
    return (operand == 0 && rows_are_pixels_) || (operand == 2 && epilogue_.residual);
  }
  bool rereads_weights() const override { return true; }
  int first_stages() const override { return stages() - 1; }
  std::string description() const override {
    return fmt::format("{} chunks of {} positions × {} taps of {} × {}{}", result_chunks(), rows_,
                       window_.count(), g_.in_channels, chunk_.columns,
                       packed_.empty() ? "" : ", packed before");
  }

 private:
  int64_t shared_units() const override { return packed_.empty() ? right_units() + moved_units() : 0; }
  bool moves_taps() const { return window_.count() > 1; }
  // Of the weights as the user has them: [rows, channels, taps].
  int64_t weight_rows() const { return turns_ ? g_.in_channels : g_.out_channels; }
  int64_t weight_channels() const { return turns_ ? g_.out_channels : g_.in_channels; }
  int64_t moved_units() const {
    const int64_t elements = window_.count() * g_.in_channels * g_.out_channels;
    return moves_taps() ? round_up(elements * arithmetic_.bytes / 4 + 1, 16) : 0;
  }
  int64_t tap_units(const Part& part) const { return (part.count + arithmetic_.unit - 1) / arithmetic_.unit; }

  /// Few channels: several taps at a time. Many: each tap in equal pieces.
  void divide_sum() {
    const int64_t step = depth * arithmetic_.unit, channels = g_.in_channels, taps = window_.count();
    if (const int64_t whole = round_up(channels, arithmetic_.unit); whole <= step) {
      const int64_t together = step / whole, pieces = (taps + together - 1) / together;
      for (int64_t i = 0; i < pieces; ++i)
        sum_.push_back({taps * i / pieces, taps * (i + 1) / pieces - taps * i / pieces, 0, channels});
    } else {
      const int64_t pieces = (channels + step - 1) / step;
      const int64_t size = round_up((channels + pieces - 1) / pieces, arithmetic_.unit);
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t begin = 0; begin < channels; begin += size)
          sum_.push_back({tap, 1, begin, std::min(size, channels - begin)});
    }
  }

  void move_taps(const void* from, Unit* to, int64_t row) const {
    const int64_t channels = weight_channels(), bytes = arithmetic_.bytes;
    order_.outwards(static_cast<const char*>(from) + row * channels * window_.count() * bytes,
                    reinterpret_cast<char*>(to) + row * channels * bytes, weight_rows() * channels, channels);
  }

  /// From weights [taps, rows, channels].
  void pack_right(const void* from, Unit* to, int64_t chunk) const {
    const int64_t bytes = arithmetic_.bytes, channels = weight_channels();
    const char* rows[2 * depth];
    each_panel(to, chunk, [&](int64_t p, int64_t n, int64_t columns, Unit* panel) {
      const Part& part = sum_[static_cast<size_t>(p)];
      for (int64_t t = 0; t < part.taps; ++t, panel += tap_units(part) * arithmetic_.panel) {
        const int64_t tap = turns_ ? window_.count() - 1 - (part.tap + t) : part.tap + t;
        const char* const w = static_cast<const char*>(from) + tap * weight_rows() * channels * bytes;
        if (!turns_) {
          arithmetic_.pack_columns(w + (n * channels + part.begin) * bytes, channels, columns, part.count,
                                   panel);
          continue;
        }
        for (int64_t k = 0; k < part.count; ++k) rows[k] = w + (part.begin + k) * channels * bytes;
        arithmetic_.pack_rows(rows, n * bytes, part.count, columns, panel, arithmetic_.panel);
      }
    });
  }

  void pack_constant(const Array& weights, Array& packed) const {
    std::vector<Unit> moved(static_cast<size_t>(moved_units()));
    if (moves_taps())
      for (int64_t row = 0; row < weight_rows(); ++row) move_taps(weights.data(), moved.data(), row);
    auto* const to = static_cast<Unit*>(packed.data());
    for (int64_t i = 0; i < pack_chunks(); ++i)
      pack_right(moves_taps() ? moved.data() : weights.data(), to, i);
  }

  /// Rows of the left side for one part of the sum, in blocks.
  void gather(const char* x, const Window* windows, int64_t m, int64_t rows, const Part& part,
              Unit* to) const {
    const char* from[max_rows];
    const int64_t bytes = arithmetic_.bytes, blocks = arithmetic_.blocks_of(rows),
                  step = tap_units(part) * (arithmetic_.packs_by_rows(true) ? 1 : arithmetic_.left_step);
    for (int64_t t = 0; t < part.taps; ++t) {
      if (rows_are_pixels_)
        for (int64_t r = 0; r < rows; ++r) from[r] = x + (m + r) * g_.in_channels * bytes;
      else
        window_.move(x, windows, rows, part.tap + t, from);
      for (int64_t i = 0; i < blocks; ++i) {
        const int64_t r = rows * i / blocks;
        arithmetic_.pack_left_rows(from + r, part.begin * bytes, rows * (i + 1) / blocks - r, part.count,
                                   to + i * arithmetic_.left_block + t * step);
      }
    }
  }

  static constexpr int64_t max_rows = 320;
  void multiply(void* const* operands, void* result, Unit* shared, Unit* own, int64_t m, int64_t rows,
                int64_t columns_part) const override {
    Window windows[max_rows];
    if (!rows_are_pixels_) window_.find(m, rows, windows);
    const char* const x = static_cast<const char*>(operands[0]);
    const Unit* const right = packed_.empty() ? shared : fixed_right();
    add_parts(operands, result, right, own, m, columns_part, nullptr, [&](int64_t p) {
      const Part& part = sum_[static_cast<size_t>(p)];
      Left left{own, arithmetic_.packs_by_rows(true), rows};
      if (in_place_) {
        left.blocks =
            reinterpret_cast<const Unit*>(x + (m * g_.in_channels + part.begin) * arithmetic_.bytes);
        left.step = g_.in_channels / arithmetic_.unit;
      } else {
        gather(x, windows, m, rows, part, own);
      }
      return left;
    });
  }

  const Geometry g_;  // of the convolution that is computed
  const bool turns_;  // the weights
  const Taps window_;
  const TapOrder order_;
  const bool rows_are_pixels_;  // row m of the left side is pixel m of x
  std::vector<Part> sum_;
};

}  // namespace

std::optional<std::string> why_no_convolution(const Graph& graph, const Node& node) {
  const Geometry g = geometry_of(graph, node);
  const bool turns = ops::convolution_part(node) == ops::ConvolutionPart::input_gradient;
  if (g.groups != 1) return "only one group";
  if (turns && (g.stride_h != 1 || g.stride_w != 1)) return "gradients of strides need holes in the picture";
  // Constant weights are packed once, so less is worth it.
  const bool packed = graph.constant_value(node.operands[1]) != nullptr;
  const int64_t least = packed ? block_columns / 2 : block_columns;
  if (std::min(g.in_channels, g.out_channels) < least) return "too few channels for blocks of 14×32";
  if (g.images * g.out_height * g.out_width < block_rows) return "too few positions for blocks of 14×32";
  if (g.work() < (packed ? 2e6 : 16e6)) return "too little work to pack for";
  return std::nullopt;
}

std::unique_ptr<Kernel> build_convolution(const KernelRequest& request) {
  const Geometry g = geometry_of(request.graph, request.node);
  const bool turns = ops::convolution_part(request.node) == ops::ConvolutionPart::input_gradient;
  return std::make_unique<Convolution>(turns ? turned(g) : g, turns,
                                       request.graph.constant_value(request.node.operands[1]),
                                       epilogue_of(request.node));
}

}  // namespace millrace::cpu::gemm
