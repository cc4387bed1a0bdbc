#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

/// By elimination, with the largest element of a column as its pivot.
MILLRACE_ONNX_IMPORT(Det) {
  const Ints sizes = call.shape(0).sizes();
  if (sizes.size() < 2 || sizes.back() != sizes[sizes.size() - 2]) call.refuse("its matrices are not square");
  const int64_t n = sizes.back();
  if (n < 1 || n > 64) call.refuse("matrices of more than 64 rows are not known");
  const Shape batch(Ints(sizes.begin(), sizes.end() - 2));
  const int64_t many = batch.count();
  const DType dtype = call.dtype(0).bits < 32 ? f32 : call.dtype(0);
  Value m = call.b.reshape(call.b.cast(call[0], dtype), {many, n, n});
  Value det = call.b.broadcast(call.scalar(dtype, 1), {many});
  for (int64_t size = n; size > 0; --size) {
    const auto part = [&](Value x, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
      return call.graph.add("slice", {x}, {{"starts", Ints{0, r0, c0}}, {"ends", Ints{many, r1, c1}}});
    };
    const Value column = call.b.reshape(part(m, 0, size, 0, 1), {many, size});
    const Value at =
        call.graph.add("argmax", {call.graph.add("abs", {column})}, {{"axes", Ints{1}}});  // [many]
    const Value rows = call.places({many, size}, 1);
    const Value is = call.b.cast(
        call.graph.add("equal", {rows, call.b.broadcast(call.b.reshape(at, {many, 1}), {many, size})}),
        dtype);
    const Value pivot_row =
        call.b.sum(call.b.mul(m, call.b.reshape(is, {many, size, 1})), {1}, true);  // [many, 1, size]
    const Value first_row = part(m, 0, 1, 0, size);
    const Value pivot = call.b.reshape(part(pivot_row, 0, 1, 0, 1), {many});
    const Value swapped = call.compare("greater", at, 0);
    det = call.b.mul(det, call.b.select(swapped, call.graph.add("neg", {pivot}), pivot));
    if (size == 1) break;
    // The first row takes the pivot's place.
    const Value moved =
        call.b.add(m, call.b.mul(call.b.sub(first_row, pivot_row), call.b.reshape(is, {many, size, 1})));
    const Value below = part(moved, 1, size, 0, size);
    const Value safe = call.b.select(call.compare("equal", pivot, 0), call.fill(pivot, 1), pivot);
    const Value factor = call.b.div(part(below, 0, size - 1, 0, 1), call.b.reshape(safe, {many, 1, 1}));
    const Value cleared = call.b.sub(below, call.b.mul(factor, pivot_row));
    m = part(cleared, 0, size - 1, 1, size);
  }
  return {call.b.cast(call.b.reshape(det, batch), call.dtype(0))};
}
