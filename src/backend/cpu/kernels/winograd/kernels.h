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

/// The rows of RowKernel that a result splits into: rows of tiles where these fill the maps, else whole
/// pictures.
class TileRows {
 public:
  TileRows(const TileGrid& grid, int64_t height)
      : tiles_(grid.count()),
        images_(grid.images),
        most_(height % grid.side == 0 ? images_ * grid.rows : images_) {}
  int64_t most() const { return most_; }
  int64_t of_a_row(int64_t rows) const { return tiles_ / rows; }
  /// `chunk`: tiles that are worth a piece.
  int64_t grain(int64_t rows, int64_t chunk) const {
    if (rows <= 0 || (most_ % rows != 0 && images_ % rows != 0)) return 0;
    return (chunk + of_a_row(rows) - 1) / of_a_row(rows);
  }
  /// About so many tiles, but whole rows, where that is not much more, and there are enough rows for some
  /// threads.
  int64_t whole(int64_t chunk) const {
    if (most_ < 8) return chunk;
    const int64_t row = of_a_row(most_), up = (chunk + row - 1) / row * row;
    return up <= chunk * 3 / 2 ? up : chunk;
  }

 private:
  int64_t tiles_, images_, most_;
};

/// A convolution that is computed some tiles at a time, also row by row (RowKernel).
class TiledConvolution : public ChunkedKernel, public RowKernel, public PackingKernel {
 public:
  /// Tiles have `side` results in each direction; `wished` says how many of so many are a chunk.
  TiledConvolution(const Problem& p, int64_t side, int64_t (*wished)(const Problem&, int64_t tiles),
                   const Epilogue& epilogue)
      : p_(p),
        epilogue_(epilogue),
        grid_(grid_of(p.images, p.out_height, p.out_width, side)),
        rows_(grid_, p.out_height),
        tiles_(rows_.whole(wished(p, grid_.count()))),
        slots_(tile_chunks()) {}

  int64_t most_rows() const override { return rows_.most(); }
  int64_t row_grain(int64_t rows) const override { return rows_.grain(rows, tiles_); }
  bool rereads_weights() const override { return true; }
  int first_stages() const override { return stages() - 1; }
  void run_rows(int64_t rows, int64_t begin, int64_t end, void* const* operands, void* const* results,
                void* scratch) override {
    const int64_t each = rows_.of_a_row(rows);
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
  TileRows rows_;
  int64_t tiles_;
  Slots slots_;
};

}  // namespace millrace::cpu::winograd
