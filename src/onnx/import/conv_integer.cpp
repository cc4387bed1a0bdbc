#include "onnx/import/windows.h"

using namespace millrace;
using onnx::Ints;

// Convolutions of whole numbers, as floats that hold sums of products exactly up to 2^53.
namespace {

/// A number or one for each of `axis`, spread for [.., axis, ..] of `rank`.
Value on_axis(onnx::ImportCall& call, int k, int64_t axis, int rank) {
  Shape shape(static_cast<size_t>(rank), Dim(1));
  const int64_t count = call.shape(k).count();
  if (count != 1) shape[static_cast<size_t>(axis)] = count;
  return call.b.reshape(call.b.cast(call[k], f64), shape);
}

/// The convolution of operands x and w without their zero points (−1: none), so that pads are zeros.
Value convolved_centred(onnx::ImportCall& call, int x, int w, int x_point, int w_point) {
  const Ints weight = call.shape(w).sizes();
  if (weight.size() < 3 || weight.size() > 5) call.refuse("convolutions of 1, 2 and 3 dimensions are known");
  const onnx::Windows windows = windows_of(call, Ints(weight.begin() + 2, weight.end()));
  const auto centred_at = [&](int k, int point) {
    const Value value = call.b.cast(call[k], f64);
    if (point < 0 || !call.given(point)) return value;
    return call.b.sub(value, on_axis(call, point, 0, call.rank(k)));
  };
  return onnx::convolved(call, centred_at(x, x_point), centred_at(w, w_point), windows,
                         call.integer("group", 1));
}

}  // namespace

MILLRACE_ONNX_IMPORT(ConvInteger) { return {call.b.cast(convolved_centred(call, 0, 1, 2, 3), i32)}; }

MILLRACE_ONNX_IMPORT(QLinearConv) {
  Value sums = convolved_centred(call, 0, 3, 2, 5);
  const int rank = call.b.shape(sums).rank();
  if (call.given(8)) sums = call.b.add(sums, on_axis(call, 8, 1, rank));
  const Value scale =
      call.b.div(call.b.mul(on_axis(call, 1, 1, rank), on_axis(call, 4, 1, rank)), on_axis(call, 6, 1, rank));
  const DType to = call.dtype(7);
  if (to != u8 && to != i8) call.refuse("it quantises to " + to.name());
  Value q = call.graph.add("round", {call.b.mul(sums, scale)});
  q = call.b.add(q, on_axis(call, 7, 1, rank));
  return {call.b.cast(call.clamp(q, to == u8 ? 0 : -128, to == u8 ? 255 : 127), to)};
}
