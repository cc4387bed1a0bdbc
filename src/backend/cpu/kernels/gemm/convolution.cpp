#include "ops/convolution.h"

#include <algorithm>

#include <millrace/operator.h>

#include "backend/cpu/kernels/epilogue.h"
#include "backend/cpu/kernels/gemm/kernels.h"
#include "backend/cpu/kernels/gemm/tap_order.h"
#include "backend/cpu/kernels/gemm/taps.h"
#include "base/format.h"
#include "target/shared_constants.h"
#include "target/slot.h"

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
class Convolution : public ChunkedKernel, public RowKernel, public PackingKernel {
 public:
  Convolution(const Geometry& g, bool turns, const Array* constant, const Epilogue& epilogue)
      : g_(turns ? turned(g) : g),
        turns_(turns),
        arithmetic_(product_arithmetic(g.dtype)),
        window_(g_),
        order_(arithmetic_, window_.count()),
        rows_are_pixels_(window_.count() == 1 && g_.in_height == g_.out_height &&
                         g_.in_width == g_.out_width && g_.top == 0 && g_.left == 0 && g_.stride_h == 1 &&
                         g_.stride_w == 1),
        in_place_(rows_are_pixels_ && arithmetic_.left_side != LeftSide::columns &&
                  may_lie(g_.in_channels, arithmetic_)),
        width_(round_up(g_.out_channels, arithmetic_.panel)),
        epilogue_(epilogue) {
    divide_sum();
    chunk_ =
        choose_chunks(1, window_.positions(), g_.out_channels, g_.in_channels * window_.count(), arithmetic_);
    rows_ = chunk_.rows;
    slots_ = Slots(result_chunks());
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
    with_slot(scratch, [&](const Unit* right, Unit* own) {
      multiply(operands, right, results[0], own, m, std::min(rows_, window_.positions() - m),
               chunk % chunk_.parts);
    });
  }

  // Positions are rows, as long as they are not too few for their cost; each takes of x what is around it,
  // or one pixel.
  int64_t most_rows() const override { return window_.positions(); }
  int64_t row_grain(int64_t rows) const override {
    if (rows <= 0 || window_.positions() % rows != 0) return 0;
    const int64_t each = window_.positions() / rows, wanted = std::min(4 * block_rows, rows_);
    return (wanted + each - 1) / each;
  }
  bool takes_row(int operand) const override {
    return (operand == 0 && rows_are_pixels_) || (operand == 2 && epilogue_.residual);
  }
  bool rereads_weights() const override { return true; }
  int first_stages() const override { return stages() - 1; }
  void run_rows(int64_t rows, int64_t begin, int64_t end, void* const* operands, void* const* results,
                void* scratch) override {
    const int64_t each = window_.positions() / rows;
    with_slot(scratch, [&](const Unit* right, Unit* own) {
      for (int64_t m = begin * each; m < end * each; m += rows_)
        for (int64_t part = 0; part < chunk_.parts; ++part)
          multiply(operands, right, results[0], own, m, std::min(rows_, end * each - m), part);
    });
  }

  int64_t scratch_bytes() const override {
    return (packed_.empty() ? 4 * (right_units() + moved_units()) : 0) + slots_bytes();
  }
  int64_t slots_bytes() const override { return 4 * slots_.count() * slot_units(); }
  std::string description() const override {
    return fmt::format("{} chunks of {} positions × {} taps of {} × {}{}", result_chunks(), rows_,
                       window_.count(), g_.in_channels, chunk_.columns,
                       packed_.empty() ? "" : ", packed before");
  }

 private:
  /// Calls `compute` with the packed weights and memory for one chunk.
  template <typename Compute>
  void with_slot(void* scratch, Compute&& compute) {
    auto* const shared = static_cast<Unit*>(scratch);
    const Slot slot(slots_);
    Unit* const own =
        shared + (packed_.empty() ? right_units() + moved_units() : 0) + slot.index() * slot_units();
    compute(packed_.empty() ? static_cast<const Unit*>(shared) : fixed_right(), own);
  }
  bool moves_taps() const { return window_.count() > 1; }
  // Of the weights as the user has them: [rows, channels, taps].
  int64_t weight_rows() const { return turns_ ? g_.in_channels : g_.out_channels; }
  int64_t weight_channels() const { return turns_ ? g_.out_channels : g_.in_channels; }
  int64_t parts() const { return static_cast<int64_t>(parts_.size()); }
  int64_t right_units() const { return parts() * depth * width_; }
  int64_t moved_units() const {
    const int64_t elements = window_.count() * g_.in_channels * g_.out_channels;
    return moves_taps() ? round_up(elements * arithmetic_.bytes / 4 + 1, 16) : 0;
  }
  int64_t row_chunks() const { return (window_.positions() + rows_ - 1) / rows_; }
  int64_t result_chunks() const { return row_chunks() * chunk_.parts; }
  int64_t left_units() const { return in_place_ ? 0 : arithmetic_.blocks_of(rows_) * arithmetic_.left_block; }
  // The last part of a sum is finished in registers. Rows of the result may lie multiples of 4 KB apart, all
  // in the same cache sets: sums of the others have their own memory.
  int64_t sum_row() const { return chunk_.columns + 16; }
  int64_t slot_units() const { return round_up(left_units() + (parts() > 1 ? rows_ * sum_row() : 0), 16); }
  int64_t tap_units(const Part& part) const { return (part.count + arithmetic_.unit - 1) / arithmetic_.unit; }
  const Unit* fixed_right() const { return static_cast<const Unit*>(packed_[0].data()); }

  /// Few channels: several taps at a time. Many: each tap in equal pieces.
  void divide_sum() {
    const int64_t step = depth * arithmetic_.unit, channels = g_.in_channels, taps = window_.count();
    if (const int64_t whole = round_up(channels, arithmetic_.unit); whole <= step) {
      const int64_t together = step / whole, pieces = (taps + together - 1) / together;
      for (int64_t i = 0; i < pieces; ++i)
        parts_.push_back({taps * i / pieces, taps * (i + 1) / pieces - taps * i / pieces, 0, channels});
    } else {
      const int64_t pieces = (channels + step - 1) / step;
      const int64_t size = round_up((channels + pieces - 1) / pieces, arithmetic_.unit);
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t begin = 0; begin < channels; begin += size)
          parts_.push_back({tap, 1, begin, std::min(size, channels - begin)});
    }
  }

  void move_taps(const void* from, Unit* to, int64_t row) const {
    const int64_t channels = weight_channels(), bytes = arithmetic_.bytes;
    order_.outwards(static_cast<const char*>(from) + row * channels * window_.count() * bytes,
                    reinterpret_cast<char*>(to) + row * channels * bytes, weight_rows() * channels, channels);
  }

  static constexpr int64_t panels_a_chunk = 4;
  int64_t panel_groups() const { return (width_ / arithmetic_.panel + panels_a_chunk - 1) / panels_a_chunk; }
  int64_t pack_chunks() const { return parts() * panel_groups(); }

  /// From weights [taps, rows, channels].
  void pack_right(const void* from, Unit* to, int64_t chunk) const {
    const Part& part = parts_[static_cast<size_t>(chunk / panel_groups())];
    const int64_t begin = chunk % panel_groups() * panels_a_chunk * arithmetic_.panel,
                  end = std::min(begin + panels_a_chunk * arithmetic_.panel, g_.out_channels);
    const int64_t bytes = arithmetic_.bytes, channels = weight_channels();
    const char* rows[2 * depth];
    for (int64_t n = begin; n < end; n += arithmetic_.panel)
      for (int64_t t = 0; t < part.taps; ++t) {
        const int64_t tap = turns_ ? window_.count() - 1 - (part.tap + t) : part.tap + t;
        const char* const w = static_cast<const char*>(from) + tap * weight_rows() * channels * bytes;
        Unit* const panel = to + chunk / panel_groups() * depth * width_ + n * depth +
                            t * tap_units(part) * arithmetic_.panel;
        const int64_t columns = std::min(arithmetic_.panel, g_.out_channels - n);
        if (!turns_) {
          arithmetic_.pack_columns(w + (n * channels + part.begin) * bytes, channels, columns, part.count,
                                   panel);
          continue;
        }
        for (int64_t k = 0; k < part.count; ++k) rows[k] = w + (part.begin + k) * channels * bytes;
        arithmetic_.pack_rows(rows, n * bytes, part.count, columns, panel, arithmetic_.panel);
      }
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
  /// Up to rows_ positions of the result from m on, and a part of its channels.
  void multiply(void* const* operands, const Unit* right, void* result, Unit* own, int64_t m, int64_t rows,
                int64_t columns_part) const {
    const int64_t n = chunk_.first_column(columns_part), bytes = arithmetic_.bytes,
                  columns = std::min(chunk_.first_column(columns_part + 1), g_.out_channels) - n;
    Window windows[max_rows];
    if (!rows_are_pixels_) window_.find(m, rows, windows);
    const char* const x = static_cast<const char*>(operands[0]);
    const int64_t offset = (m * g_.out_channels + n) * bytes;
    Finish finish{.to = static_cast<char*>(result) + offset, .step = g_.out_channels * bytes};
    if (epilogue_.present) {
      const Epilogue::At at = epilogue_.at(operands, n, offset);
      finish.bias = at.bias;
      finish.added = at.added;
      finish.low = epilogue_.low;
      finish.high = epilogue_.high;
    }
    auto* const sums = reinterpret_cast<float*>(own + left_units());
    for (int64_t p = 0; p < parts(); ++p) {
      const bool last = p + 1 == parts();
      const Part& part = parts_[static_cast<size_t>(p)];
      Left left{own, arithmetic_.packs_by_rows(true), rows};
      if (in_place_) {
        left.blocks = reinterpret_cast<const Unit*>(x + (m * g_.in_channels + part.begin) * bytes);
        left.step = g_.in_channels / arithmetic_.unit;
      } else {
        gather(x, windows, m, rows, part, own);
      }
      const Unit* const panels = right + p * depth * width_ + n * depth;
      multiply_blocks(arithmetic_, left, panels, part.taps * tap_units(part), {sums, sum_row(), p > 0},
                      columns, last ? nullptr : panels + depth * width_, last ? &finish : nullptr);
    }
  }

  Geometry g_;  // of the convolution that is computed
  bool turns_;  // the weights
  const Arithmetic& arithmetic_;
  Taps window_;
  TapOrder order_;
  bool rows_are_pixels_;  // row m of the left side is pixel m of x
  bool in_place_;         // the left side is not gathered
  int64_t width_;         // columns of whole panels
  Epilogue epilogue_;
  std::vector<Part> parts_;  // of the sum
  int64_t rows_ = 0;         // of a chunk
  Rectangle chunk_{};
  Slots slots_;
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
  return std::make_unique<Convolution>(
      geometry_of(request.graph, request.node),
      ops::convolution_part(request.node) == ops::ConvolutionPart::input_gradient,
      request.graph.constant_value(request.node.operands[1]), epilogue_of(request.node));
}

}  // namespace millrace::cpu::gemm
