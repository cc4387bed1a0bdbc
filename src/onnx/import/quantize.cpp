#include <algorithm>
#include <utility>

#include "onnx/import/call.h"
#include "onnx/import/matmul.h"
#include "onnx/import/narrow.h"
#include "onnx/import/windows.h"

using namespace millrace;
using onnx::Ints;

// Whole numbers that stand for floats: x = (q − zero point) · scale.
namespace {

/// Scale or zero point, one for all, one along `axis`, or one for each block of it, as the operand's shape.
Value spread_out(onnx::ImportCall& call, Value of, const Shape& shape, int64_t axis, int64_t block) {
  const Shape own = call.b.shape(of);
  if (own.count() == 1 && own.rank() <= 1) return call.b.broadcast(call.b.reshape(of, {}), shape);
  if (axis < 0 || axis >= shape.rank()) call.refuse("its scale has an axis that its input has not");
  if (own.rank() == 1) {
    Shape one(shape.size(), Dim(1));
    one[static_cast<size_t>(axis)] = own[0];
    return call.b.broadcast(call.b.reshape(of, one), shape);
  }
  if (own.rank() != shape.rank()) call.refuse("its scale fits neither all, nor an axis, nor blocks");
  Ints places;
  const int64_t size = shape[static_cast<size_t>(axis)].size(),
                blocks = own[static_cast<size_t>(axis)].size();
  if (block == 0) block = (size + blocks - 1) / std::max<int64_t>(1, blocks);
  for (int64_t i = 0; i < size; ++i) places.push_back(i / block);
  return call.gather(of, call.ints_constant(places), axis);
}

/// The axis that scales and zero points belong to, where they are not one for all; the last one at most.
int64_t axis_of_scales(onnx::ImportCall& call) {
  const int rank = call.rank(0);
  return rank == 0 ? 0 : call.axis(std::min<int64_t>(call.integer("axis", 1), rank - 1), rank);
}

std::pair<double, double> range_of(onnx::ImportCall& call, DType dtype) {
  if (!dtype.is_int() || dtype.bits > 16) call.refuse("it quantises to " + dtype.name());
  const bool negative = dtype.kind == Kind::signed_int;
  const double codes = static_cast<double>(1 << dtype.bits);
  return {negative ? -codes / 2 : 0, negative ? codes / 2 - 1 : codes - 1};
}

}  // namespace

MILLRACE_ONNX_IMPORT(QuantizeLinear) {
  const Shape shape = call.shape(0);
  const int64_t axis = axis_of_scales(call);
  const int64_t block = call.integer("block_size", 0);
  DType to = call.given(2) ? call.dtype(2) : u8;
  if (!call.given(2) && call.integer("output_dtype", 0) != 0) {
    const std::optional<DType> said = onnx::dtype_of(call.integer("output_dtype"));
    if (!said) call.refuse("it quantises to " + onnx::data_type_name(call.integer("output_dtype")));
    to = *said;
  }
  const Value scale = call.b.cast(spread_out(call, call[1], shape, axis, block), f32);
  if (is_narrow_float(to))
    return {onnx::narrowed(call, call.b.div(call.b.cast(call[0], f32), scale), to,
                           call.integer("saturate", 1) != 0)};
  const auto [low, high] = range_of(call, to);
  Value q = call.graph.add("round", {call.b.div(call.b.cast(call[0], f32), scale)});
  if (call.given(2)) q = call.b.add(q, call.b.cast(spread_out(call, call[2], shape, axis, block), f32));
  return {call.b.cast(call.clamp(q, low, high), to)};
}

MILLRACE_ONNX_IMPORT(DequantizeLinear) {
  const Shape shape = call.shape(0);
  const int64_t axis = axis_of_scales(call);
  const int64_t block = call.integer("block_size", 0);
  Value x = call.b.cast(call[0], f32);
  if (call.given(2)) x = call.b.sub(x, call.b.cast(spread_out(call, call[2], shape, axis, block), f32));
  return {call.b.cast(call.b.mul(x, call.b.cast(spread_out(call, call[1], shape, axis, block), f32)),
                      call.dtype(1))};
}

MILLRACE_ONNX_IMPORT(DynamicQuantizeLinear) {
  const Ints all = onnx::numbered(0, call.rank(0));
  const Value x = call[0], zero = call.scalar(f32, 0);
  const Value high = call.b.binary("maximum", call.b.max(x, all, false), zero);
  const Value low =
      call.b.binary("minimum", call.graph.add("min", {x}, {{"axes", all}, {"keep_dims", false}}), zero);
  const Value scale = call.b.div(call.b.sub(high, low), 255);
  const auto as_byte = [&](Value y) { return call.clamp(call.graph.add("round", {y}), 0, 255); };
  const Value point = as_byte(call.b.div(call.graph.add("neg", {low}), scale));
  // Rounded before the zero point is added.
  const Value q = call.b.add(call.graph.add("round", {call.b.binary("div", x, scale)}), point);
  return {call.b.cast(as_byte(q), u8), scale, call.b.cast(point, u8)};
}

namespace {

/// Of whole numbers, without their zero point, as floats: f64 holds sums of products exactly up to 2^53.
Value centred(onnx::ImportCall& call, int k, int point, int64_t axis, DType dtype = f64) {
  Value x = call.b.cast(call[k], dtype);
  if (call.given(point))
    x = call.b.sub(x, spread_out(call, call.b.cast(call[point], dtype), call.b.shape(x), axis, 0));
  return x;
}

/// a · b of whole numbers up to ±255 in f32, as i32: by so many terms that f32 holds their sums exactly, for
/// which there are fast kernels.
Value product_of_bytes(onnx::ImportCall& call, Value a, Value b) {
  constexpr int64_t terms = (int64_t{1} << 24) / (255 * 255);
  const int64_t inner = call.b.shape(a).empty() ? 1 : call.b.shape(a).back().size();
  const int rank = call.b.shape(b).rank();
  Value sum;
  for (int64_t from = 0; from == 0 || from < inner; from += terms) {
    const int64_t to = std::min(from + terms, inner);
    const bool all = inner <= terms || rank == 0;
    const Value left = all ? a : call.part(a, call.b.shape(a).rank() - 1, from, to),
                right = all ? b : call.part(b, std::max(0, rank - 2), from, to);
    const Value part = call.b.cast(onnx::multiplied(call, left, right), i32);
    sum = sum.valid() ? call.b.add(sum, part) : part;
  }
  return sum;
}

/// The convolution of two such operands; their pads are zeros.
Value convolved_centred(onnx::ImportCall& call, int x, int w, int x_point, int w_point) {
  const Ints weight = call.shape(w).sizes();
  if (weight.size() < 3 || weight.size() > 5) call.refuse("convolutions of 1, 2 and 3 dimensions are known");
  const onnx::Windows windows = windows_of(call, Ints(weight.begin() + 2, weight.end()));
  return onnx::convolved(call, centred(call, x, x_point, 0), centred(call, w, w_point, 0), windows,
                         call.integer("group", 1));
}

}  // namespace

MILLRACE_ONNX_IMPORT(ConvInteger) { return {call.b.cast(convolved_centred(call, 0, 1, 2, 3), i32)}; }

MILLRACE_ONNX_IMPORT(QLinearConv) {
  Value sums = convolved_centred(call, 0, 3, 2, 5);
  const Shape shape = call.b.shape(sums);
  const auto wide = [&](int k) { return call.b.cast(call[k], f64); };
  const auto in_shape = [&](Value x) { return spread_out(call, x, shape, 1, 0); };
  if (call.given(8)) sums = call.b.add(sums, in_shape(wide(8)));
  const DType to = call.dtype(7);
  const auto [low, high] = range_of(call, to);
  const Value scale = in_shape(call.b.div(call.b.mul(wide(1), wide(4)), wide(6)));
  const Value q = call.b.add(call.graph.add("round", {call.b.mul(sums, scale)}), in_shape(wide(7)));
  return {call.b.cast(call.clamp(q, low, high), to)};
}

MILLRACE_ONNX_IMPORT(MatMulInteger) {
  const int64_t rows = std::max(0, call.rank(0) - 2), columns = call.rank(1) - 1;
  return {product_of_bytes(call, centred(call, 0, 2, rows, f32), centred(call, 1, 3, columns, f32))};
}

MILLRACE_ONNX_IMPORT(QLinearMatMul) {
  const Value a = call.b.cast(call[0], f64), b = call.b.cast(call[3], f64);
  const auto of = [&](int k, Value like, int64_t axis) {
    return call.b.cast(spread_out(call, call[k], call.b.shape(like), axis, 0), f64);
  };
  const int64_t rows = std::max(0, call.rank(0) - 2), columns = call.rank(3) - 1;
  const Value left = call.b.mul(call.b.sub(a, of(2, a, rows)), of(1, a, rows));
  const Value right = call.b.mul(call.b.sub(b, of(5, b, columns)), of(4, b, columns));
  const Value y = onnx::multiplied(call, left, right);
  const int64_t of_y = std::max(0, call.b.shape(y).rank() - 2);
  const DType to = call.dtype(7);
  const auto [low, high] = range_of(call, to);
  const Value q = call.b.add(call.graph.add("round", {call.b.div(y, of(6, y, of_y))}), of(7, y, of_y));
  return {call.b.cast(call.clamp(q, low, high), to)};
}
