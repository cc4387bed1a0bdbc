#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/gemm/kernels.h"
#include "backend/cpu/kernels/gemm/tap_order.h"
#include "backend/cpu/kernels/gemm/taps.h"
#include "base/format.h"
#include "target/slot.h"

namespace millrace::cpu::gemm {
namespace {

// dw[out, tap, in] = sum over positions of dy[position, out] · x[position moved by the tap, in]: a product
// whose right side has taps × in columns, gathered panel by panel. A chunk is a rectangle of it over some of
// the positions; rectangles over different positions are added at the end, in order.
class WeightGradient : public ChunkedKernel {
 public:
  explicit WeightGradient(const Geometry& g)
      : g_(g),
        arithmetic_(product_arithmetic(g.dtype)),
        step_(depth * arithmetic_.unit),
        window_(g),
        positions_(window_.positions()),
        parts_((positions_ + step_ - 1) / step_),
        taps_(window_.count()),
        panels_a_tap_((g.in_channels + arithmetic_.panel - 1) / arithmetic_.panel),
        order_(arithmetic_, taps_) {
    choose_chunks();
    slots_ = Slots(chunks(0));
  }

  std::unique_ptr<Kernel> another() const override { return std::make_unique<WeightGradient>(*this); }
  int stages() const override { return finishes_at_once() ? 1 : 2; }
  int64_t chunks(int stage) const override {
    return stage == 0 ? splits_ * row_chunks() * panel_chunks()
                      : (g_.out_channels + result_rows() - 1) / result_rows();
  }
  double nanoseconds() const override { return g_.work() / arithmetic_.rate; }

  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    auto* const sums = static_cast<float*>(scratch);
    auto* const own = static_cast<Unit*>(scratch) + splits_ * sum_size();
    const Slot slot(slots_);
    if (stage == 1) return finish(sums, own + slot.index() * slot_units(), results[0], chunk);
    multiply(static_cast<const char*>(operands[0]), static_cast<const char*>(operands[1]),
             static_cast<char*>(results[0]), sums, own + slot.index() * slot_units(), chunk);
  }

  int64_t scratch_bytes() const override { return 4 * splits_ * sum_size() + slots_bytes(); }
  int64_t slots_bytes() const override { return 4 * slots_.count() * slot_units(); }
  std::string description() const override {
    return fmt::format("{} positions × {} × {} taps of {}, {} chunks, {} partial sum{}", positions_,
                       g_.out_channels, taps_, g_.in_channels, chunks(0), splits_, splits_ == 1 ? "" : "s");
  }

 private:
  int64_t row_length() const { return taps_ * panels_a_tap_ * arithmetic_.panel; }
  // Rows of sums do not lie multiples of 4 KB apart, all in the same cache sets.
  int64_t sum_row() const { return row_length() + 16; }
  int64_t sum_size() const { return g_.out_channels * sum_row(); }
  int64_t panels() const { return taps_ * panels_a_tap_; }
  int64_t row_chunks() const { return (g_.out_channels + rows_ - 1) / rows_; }
  int64_t panel_chunks() const { return (panels() + panels_ - 1) / panels_; }
  int64_t left_units() const { return arithmetic_.blocks_of(rows_) * arithmetic_.left_block; }
  int64_t slot_units() const {
    // Of the last stage: a row of the sums, and one in the result's type.
    return std::max(left_units() + depth * arithmetic_.panel, 2 * row_length());
  }
  int64_t result_rows() const { return std::max<int64_t>(1, 16384 / row_length()); }

  // Rectangles of up to 192 × 384 stay in the second-level cache with what is packed and fetched for them.
  // There are 16 chunks of a large problem, or 32 and so on: where the result is too small for that, the
  // positions are divided too.
  void choose_chunks() {
    const auto wanted = static_cast<int64_t>(std::clamp(g_.work() / 12e6, 1.0, 16.0));
    int64_t by_rows = 1, by_panels = 1;
    while (g_.out_channels > 192 * by_rows) by_rows *= 2;
    while (panels() * arithmetic_.panel > 384 * by_panels) by_panels *= 2;
    rows_ = (g_.out_channels + by_rows - 1) / by_rows;
    panels_ = (panels() + by_panels - 1) / by_panels;
    splits_ = std::clamp<int64_t>((wanted + by_rows * by_panels - 1) / (by_rows * by_panels), 1, parts_);
  }

  /// Whether sums are the result as they lie, and whole when a chunk ends.
  bool finishes_at_once() const { return taps_ == 1 && splits_ == 1; }

  void multiply(const char* x, const char* dy, char* result, float* sums, Unit* own, int64_t chunk) const {
    const int64_t split = chunk / (row_chunks() * panel_chunks()),
                  rectangle = chunk % (row_chunks() * panel_chunks());
    const int64_t out = rectangle % row_chunks() * rows_, rows = std::min(rows_, g_.out_channels - out);
    const int64_t first = rectangle / row_chunks() * panels_, last = std::min(first + panels_, panels());
    float* const c = sums + split * sum_size() + out * sum_row();
    Unit* const right = own + left_units();
    const int64_t begin = parts_ * split / splits_, end = parts_ * (split + 1) / splits_;
    Window windows[2 * depth];
    const char *from[2 * depth], *moved[2 * depth];
    for (int64_t part = begin; part < end; ++part) {
      const int64_t k0 = part * step_, count = std::min(step_, positions_ - k0),
                    units = (count + arithmetic_.unit - 1) / arithmetic_.unit;
      window_.find(k0, count, windows);
      for (int64_t k = 0; k < count; ++k)
        from[k] = dy + ((k0 + k) * g_.out_channels + out) * arithmetic_.bytes;
      pack_left_columns(arithmetic_, from, 0, count, rows, own);
      for (int64_t p = first; p < last; ++p) {
        const int64_t tap = p / panels_a_tap_, in = p % panels_a_tap_ * arithmetic_.panel;
        if (p == first || in == 0) window_.move(x, windows, count, tap, moved);
        const int64_t columns = std::min(arithmetic_.panel, g_.in_channels - in);
        arithmetic_.pack_rows(moved, in * arithmetic_.bytes, count, columns, right, arithmetic_.panel);
        After after;
        if (part + 1 < end)
          after = fetch_left(arithmetic_, gradient_rows(dy, part + 1, out), rows, p - first, last - first);
        if (p + 1 < last)
          after.right = picture_rows(x, part, p + 1);
        else if (part + 1 < end)
          after.right = picture_rows(x, part + 1, first);
        const Finish finish{result + (out * g_.in_channels + in) * arithmetic_.bytes,
                            g_.in_channels * arithmetic_.bytes};
        multiply_blocks(arithmetic_, {own, arithmetic_.packs_by_rows(false), rows}, right, units,
                        {c + p * arithmetic_.panel, sum_row(), part > begin},
                        finishes_at_once() ? columns : arithmetic_.panel, after,
                        finishes_at_once() && part + 1 == end ? &finish : nullptr);
      }
    }
  }

  /// Where a part of the left side lies, and of the right side what a panel is packed from: that is known
  /// beforehand where positions of the result are positions of the picture.
  Rows gradient_rows(const char* dy, int64_t part, int64_t out) const {
    return {dy + (part * step_ * g_.out_channels + out) * arithmetic_.bytes,
            g_.out_channels * arithmetic_.bytes};
  }
  Rows picture_rows(const char* x, int64_t part, int64_t panel) const {
    if (g_.stride_h != 1 || g_.stride_w != 1 || g_.out_width != g_.in_width || g_.out_height != g_.in_height)
      return {};
    const int64_t tap = panel / panels_a_tap_, down = tap / g_.kernel_width * g_.dilation_h - g_.top,
                  right = tap % g_.kernel_width * g_.dilation_w - g_.left,
                  in = panel % panels_a_tap_ * arithmetic_.panel,
                  position = part * step_ + down * g_.in_width + right;
    return {x + (position * g_.in_channels + in) * arithmetic_.bytes, g_.in_channels * arithmetic_.bytes};
  }

  /// Adds the partial sums of some rows and writes them with the taps innermost.
  void finish(const float* sums, Unit* own, void* result, int64_t chunk) const {
    auto* const sum = reinterpret_cast<float*>(own);
    char* const rounded = reinterpret_cast<char*>(own + row_length());
    const int64_t in = g_.in_channels, padded = panels_a_tap_ * arithmetic_.panel;
    for (int64_t o = chunk * result_rows(); o < std::min((chunk + 1) * result_rows(), g_.out_channels); ++o) {
      const float* from = sums + o * sum_row();
      if (splits_ > 1) {
        std::memcpy(sum, from, static_cast<size_t>(row_length()) * sizeof(float));
        for (int64_t s = 1; s < splits_; ++s)
          for (int64_t i = 0; i < row_length(); ++i) sum[i] += from[s * sum_size() + i];
        from = sum;
      }
      char* const to = static_cast<char*>(result) + o * in * taps_ * arithmetic_.bytes;
      if (taps_ == 1) {
        arithmetic_.round(from, to, in);
        continue;
      }
      arithmetic_.round(from, rounded, row_length());
      order_.inwards(rounded, padded, to, in);
    }
  }

  Geometry g_;
  const Arithmetic& arithmetic_;
  int64_t step_;
  Taps window_;
  int64_t positions_, parts_, taps_, panels_a_tap_;
  TapOrder order_;
  int64_t rows_ = 0, panels_ = 0, splits_ = 1;  // of a chunk; into how many ranges positions are divided
  Slots slots_;
};

}  // namespace

std::optional<std::string> why_no_weight_gradient(const Graph& graph, const Node& node) {
  const Geometry g = geometry_of(graph, node);
  if (g.groups != 1) return "only one group";
  if (g.in_channels < 16 || g.out_channels < block_rows) return "too few channels for blocks of 14×32";
  if (g.work() < 16e6) return "too little work to pack for";
  return std::nullopt;
}

std::unique_ptr<Kernel> build_weight_gradient(const KernelRequest& request) {
  return std::make_unique<WeightGradient>(geometry_of(request.graph, request.node));
}

}  // namespace millrace::cpu::gemm
