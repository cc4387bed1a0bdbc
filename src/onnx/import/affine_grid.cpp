#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

/// Where the elements of a picture come from under a map [n, dims, dims + 1].
MILLRACE_ONNX_IMPORT(AffineGrid) {
  const Ints size = call.known_ints(1);
  const auto dims = static_cast<int64_t>(size.size()) - 2;
  if (dims < 1 || dims > 3 || call.shape(0) != Shape{size[0], dims, dims + 1})
    call.refuse("its map does not fit its size");
  const bool corners = call.integer("align_corners", 0) != 0;
  int64_t all = 1;
  Shape out{size[0]};
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t one = size[static_cast<size_t>(d + 2)];
    if (one < 1 || one > (1 << 24) / all) call.refuse("its size is not positive, or too large");
    all *= one;
    out.emplace_back(one);
  }
  out.emplace_back(dims);
  Array grid(call.dtype(0), {dims + 1, all});  // x first; the last row is 1
  for (int64_t p = 0; p < all; ++p) {
    int64_t rest = p;
    for (int64_t d = dims - 1; d >= 0; --d) {
      const int64_t n = size[static_cast<size_t>(d + 2)], at = rest % n;
      rest /= n;
      const auto i = static_cast<double>(at), many = static_cast<double>(n);
      grid.set((dims - 1 - d) * all + p,
               corners ? (n == 1 ? -1 : 2 * i / (many - 1) - 1) : (2 * i + 1) / many - 1);
    }
    grid.set(dims * all + p, 1);
  }
  const Value mapped =
      call.b.matmul(call[0], call.b.broadcast(call.constant(grid), {size[0], dims + 1, all}));
  return {call.b.reshape(call.b.transpose(mapped, {0, 2, 1}), out)};
}
