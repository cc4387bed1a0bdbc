// The kernels of the provider, and how they walk over pictures. Internal to it.
#pragma once

#include <algorithm>
#include <vector>

#include "backend/cpu/kernels/depthwise/arithmetic.h"
#include "backend/cpu/kernels/geometry.h"
#include "target/provider.h"

namespace millrace::cpu::depthwise {

constexpr int64_t max_taps = 128;

/// conv2d and conv2d_input_grad.
std::unique_ptr<Kernel> build_convolution(const KernelRequest& request, const Arithmetic& arithmetic);
std::unique_ptr<Kernel> build_weight_gradient(const KernelRequest& request, const Arithmetic& arithmetic);

/// Which channel stands where in weights and their sums, stored by blocks; some stand twice.
class Blocks {
 public:
  /// `pairs`: for convolutions that take weights of bf16.
  Blocks(int64_t channels, const Arithmetic& arithmetic, bool bf16, bool pairs = false);
  bool few() const { return few_; }      // channels: blocks are of one
  bool pairs() const { return pairs_; }  // weights are bf16
  /// Elements of all channels.
  int64_t row_length() const { return static_cast<int64_t>(channel_.size()); }
  /// Of what is f32.
  int64_t channel(int64_t place) const { return channel_[static_cast<size_t>(place)]; }
  /// Of weights of bf16.
  int64_t channel_in_order(int64_t place) const {
    return std::min(place / block_ * block_, channels_ - block_) + place % block_;
  }
  /// False for a channel that stands in the block before, too.
  bool first(int64_t place) const { return channel(place) >= place / block_ * block_; }

 private:
  bool few_, pairs_;
  int64_t channels_, block_;
  std::vector<int64_t> channel_;
};

/// Rough time on one thread.
double nanoseconds(const Geometry& g);

/// Positions of the result along one axis, `step` apart, that meet the same elements of the kernel: `kernel`
/// stands at stride · i + shift of the picture for the i-th of them. In increasing order of shifts.
struct Phase {
  int64_t first, step, count, stride;
  struct Tap {
    int64_t kernel, shift;
  };
  std::vector<Tap> taps;
};

/// One axis of a convolution.
struct Axis {
  int64_t in, out, kernel, stride, dilation, padding;
};
Axis height_of(const Geometry& g);
Axis width_of(const Geometry& g);
/// Of the convolution: a single phase. Of its input's gradient, where the picture is the result's gradient:
/// one for each remainder of the stride.
std::vector<Phase> phases_of(const Axis& axis, bool gradient);

/// The columns of a phase, and what computes them.
struct Columns : Phase {
  int64_t size;              // columns of the picture
  int shape = 0, width = 0;  // in the arithmetic's tables
  int64_t strip() const { return widths[width]; }
};
/// For the gradient of the kernel (`whole_strips`) all strips have 7 columns, also where the phase has fewer.
std::vector<Columns> columns_of(const Axis& axis, bool gradient, bool few_channels, bool whole_strips);

/// A row of the picture that a row of the kernel meets.
struct MetRow {
  int64_t kernel;
  const char* row;
};
/// Those for a row of the result; at most as many as the kernel has. Returns how many.
int64_t met_rows(const std::vector<Phase>& phases, int64_t row, int64_t height, const char* picture,
                 int64_t row_bytes, MetRow* met);

/// Room for what the arithmetic is told of one strip.
struct Pointers {
  const void* in[7 * max_taps];
  char* weights[max_taps];
  void* pixels[7];
};
/// The strip from `begin` of a phase on. `zeros` stands for a pixel outside of the picture; weights: of each
/// tap `tap_bytes`.
Strip strip_of(const Columns& columns, int64_t begin, const MetRow* rows, int64_t row_count,
               int64_t pixel_bytes, const char* zeros, void* weights, int64_t tap_bytes, int64_t kernel_width,
               Pointers& pointers);

}  // namespace millrace::cpu::depthwise
