// The kernels: F(4×4, 3×3) and F(4×4, 5×5) of f32, F(2×2, 3×3) of bf16. Internal to the provider.
#pragma once

#include <algorithm>

#include "backend/cpu/kernels/epilogue.h"
#include "backend/cpu/kernels/geometry.h"
#include "target/provider.h"
#include "target/shared_constants.h"
#include "target/slot.h"

namespace millrace::cpu::winograd {

/// conv2d, and conv2d_input_grad as the convolution of the gradient with the weights turned round.
std::unique_ptr<Kernel> build_convolution(const KernelRequest& request);
std::unique_ptr<Kernel> build_weight_gradient(const KernelRequest& request);
std::unique_ptr<Kernel> build_convolution_bf16(const KernelRequest& request);
std::unique_ptr<Kernel> build_weight_gradient_bf16(const KernelRequest& request);

/// A convolution of `x` with weights seen as a matrix of 3×3 (or 5×5) windows: from depth (channels of x) to
/// channels of y.
struct Problem {
  int64_t images, depth, channels;
  int64_t in_height, in_width, out_height, out_width, top, left;
  int64_t row_stride, column_stride;  // of the weights: from one channel of x, of y, to the next
  bool flipped;
  int64_t window;  // its side
};
Problem problem_of(const KernelRequest& request);

struct Arithmetic;

/// That of f32: the best that this CPU has, or a given one.
const Arithmetic& arithmetic_f32();
/// For tests: kernels that are built from now on have this one; null: the best again.
void set_arithmetic_f32(const Arithmetic* arithmetic);

/// Floats between the matrices of neighbouring points, so that they begin in different cache sets.
constexpr int64_t cache_line = 16;

/// How many tiles make up a map of such a size.
struct TileGrid {
  int64_t rows, columns, images, side;
  int64_t count() const { return rows * columns * images; }
};
/// Where a tile begins: the row and column of its first result.
struct TilePlace {
  int64_t image, row, column;
};
TilePlace place_of(const TileGrid& grid, int64_t index);
TileGrid grid_of(int64_t images, int64_t height, int64_t width, int64_t side);

/// A convolution that is computed some tiles at a time, also row by row (RowKernel): by rows of tiles where
/// these fill the maps, else by whole pictures.
class TiledConvolution : public ChunkedKernel, public RowKernel, public PackingKernel {
 public:
  /// Tiles have `side` results in each direction; `wished` says how many of so many are a chunk.
  TiledConvolution(const Problem& p, int64_t side, int64_t (*wished)(const Problem&, int64_t tiles),
                   const Epilogue& epilogue)
      : p_(p),
        epilogue_(epilogue),
        grid_(grid_of(p.images, p.out_height, p.out_width, side)),
        tiles_(whole_rows(wished(p, grid_.count()))),
        slots_(tile_chunks()) {}

  int64_t most_rows() const final {
    return p_.out_height % grid_.side == 0 ? grid_.images * grid_.rows : grid_.images;
  }
  int64_t row_grain(int64_t rows) const override {
    if (rows <= 0 || (most_rows() % rows != 0 && grid_.images % rows != 0)) return 0;
    return (tiles_ + tiles_of_row(rows) - 1) / tiles_of_row(rows);
  }
  bool rereads_weights() const override { return true; }
  int first_stages() const override { return stages() - 1; }
  void run_rows(int64_t rows, int64_t begin, int64_t end, void* const* operands, void* const* results,
                void* scratch) override {
    const int64_t each = tiles_of_row(rows);
    for (int64_t first = begin * each; first < end * each; first += tiles_)
      convolve(operands, results, scratch, first, std::min(first + tiles_, end * each));
  }

 protected:
  /// Tiles [first, last), tiles_ at most.
  virtual void convolve(void* const* operands, void* const* results, void* scratch, int64_t first,
                        int64_t last) = 0;
  /// What ends the results of one image.
  template <typename End>
  End end_of(End end, int64_t image) const {
    if (end.added) end.added += image * p_.out_height * p_.out_width * p_.channels;
    return end;
  }
  int64_t tile_chunks() const { return (grid_.count() + tiles_ - 1) / tiles_; }
  void convolve_chunk(void* const* operands, void* const* results, void* scratch, int64_t chunk) {
    convolve(operands, results, scratch, chunk * tiles_, std::min((chunk + 1) * tiles_, grid_.count()));
  }

  Problem p_;
  Epilogue epilogue_;
  TileGrid grid_;
  int64_t tiles_;
  Slots slots_;

 private:
  int64_t tiles_of_row(int64_t rows) const { return grid_.count() / rows; }
  /// About so many tiles, but whole rows, where that is not much more, and there are enough rows for some
  /// threads.
  int64_t whole_rows(int64_t chunk) const {
    if (most_rows() < 8) return chunk;
    const int64_t row = tiles_of_row(most_rows()), up = (chunk + row - 1) / row * row;
    return up <= chunk * 3 / 2 ? up : chunk;
  }
};

}  // namespace millrace::cpu::winograd
