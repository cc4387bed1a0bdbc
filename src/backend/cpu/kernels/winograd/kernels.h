// The two kernels. Internal to the provider.
#pragma once

#include "backend/cpu/geometry.h"
#include "target/provider.h"

namespace millrace::cpu::winograd {

/// conv2d, and conv2d_input_grad as the convolution of the gradient with the weights turned round.
std::unique_ptr<Kernel> build_convolution(const KernelRequest& request);
std::unique_ptr<Kernel> build_weight_gradient(const KernelRequest& request);

/// How many tiles make up a map of such a size.
struct TileGrid {
  int64_t rows, columns, images;
  int64_t count() const { return rows * columns * images; }
};
/// Where a tile begins: the row and column of its first result.
struct TilePlace {
  int64_t image, row, column;
};
TilePlace place_of(const TileGrid& grid, int64_t index);
TileGrid grid_of(int64_t images, int64_t height, int64_t width);

/// Rounds up to whole panels; matrices in scratch have such row lengths.
int64_t whole_panels(int64_t columns);

}  // namespace millrace::cpu::winograd
