#include <algorithm>
#include <functional>
#include <memory>

#include <millrace/operator.h>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

// ReduceSum and the other Reduce….
namespace {

/// What is reduced over, and whether its axes stay. Over no axis each element is alone.
struct ReduceCall {
  onnx::ImportCall& call;
  Ints axes = call.reduced_axes(call.rank(0));
  bool keep = axes.empty() || call.integer("keepdims", 1) != 0;

  Value over(std::string_view op, Value x, bool keep_dims) const {
    return axes.empty() ? x : call.graph.add(op, {x}, {{"axes", axes}, {"keep_dims", keep_dims}});
  }
  Value over(std::string_view op, Value x) const { return over(op, x, keep); }
  Value sum(Value x) const { return over("sum", x); }
  Value sum_of_squares(Value x) const { return sum(call.b.mul(x, x)); }
};

/// Of bools max is "any", min is "all".
Value extreme(onnx::ImportCall& call, std::string_view op) {
  const ReduceCall reduce{call};
  if (!call.dtype(0).is_bool()) return reduce.over(op, call[0]);
  return call.b.cast(reduce.over(op, call.b.cast(call[0], u8)), boolean);
}

/// Of whole numbers in doubles, without what is behind the point: as ONNX Runtime divides.
Value in_doubles(onnx::ImportCall& call, const std::function<Value(Value x)>& reduced) {
  const DType dtype = call.dtype(0);
  if (dtype.is_float()) return reduced(call[0]);
  return call.b.cast(call.graph.add("trunc", {reduced(call.b.cast(call[0], f64))}), dtype);
}

/// How often something holds: none to all of the times. So the size of what is chosen by a mask has a bound.
std::shared_ptr<const onnx::Item::Between> between(onnx::ImportCall& call, Value sum) {
  constexpr int64_t few = 64;
  const Type &of = call.graph.type(call[0]), &type = call.graph.type(sum);
  const Node& node = call.graph.node(call[0]);
  const bool mask = node.op->converts && call.b.dtype(node.operands[0]).is_bool();
  if (!mask || !of.dtype.is_int() || of.dtype.bits < 32) return nullptr;
  if (type.shape.count() == 0 || type.shape.count() > few) return nullptr;
  const int64_t times = of.shape.count() / type.shape.count();
  const Array most = Array::full(type.dtype, type.shape, static_cast<double>(times));
  return std::make_shared<const onnx::Item::Between>(Array(type), most);
}

}  // namespace

MILLRACE_ONNX_IMPORT(ReduceSum) {
  onnx::Item sum = ReduceCall{call}.sum(call[0]);
  sum.between = between(call, sum.value);
  return {sum};
}
MILLRACE_ONNX_IMPORT(ReduceMean) {
  return {in_doubles(call, [&](Value x) { return ReduceCall{call}.over("mean", x); })};
}
MILLRACE_ONNX_IMPORT(ReduceMax) { return {extreme(call, "max")}; }
MILLRACE_ONNX_IMPORT(ReduceMin) { return {extreme(call, "min")}; }
MILLRACE_ONNX_IMPORT(ReduceSumSquare) { return {ReduceCall{call}.sum_of_squares(call[0])}; }
MILLRACE_ONNX_IMPORT(ReduceL1) { return {ReduceCall{call}.sum(call.graph.add("abs", {call[0]}))}; }
MILLRACE_ONNX_IMPORT(ReduceL2) {
  return {in_doubles(call,
                     [&](Value x) { return call.graph.add("sqrt", {ReduceCall{call}.sum_of_squares(x)}); })};
}
MILLRACE_ONNX_IMPORT(ReduceLogSum) { return {call.graph.add("log", {ReduceCall{call}.sum(call[0])})}; }

MILLRACE_ONNX_IMPORT(ReduceLogSumExp) {
  const ReduceCall reduce{call};
  if (reduce.axes.empty()) return {call[0]};
  return {in_doubles(call, [&](Value x) {
    const Value largest = reduce.over("max", x, true);
    const Value finite =
        call.b.select(call.graph.add("is_finite", {largest}), largest, call.fill(largest, 0));
    const Value total = reduce.over("sum", call.graph.add("exp", {call.b.sub(x, finite)}), true);
    const Value result = call.b.add(call.graph.add("log", {total}), finite);
    return reduce.keep ? result : reduce.sum(result);
  })};
}

/// Element by element, by halves.
MILLRACE_ONNX_IMPORT(ReduceProd) {
  const ReduceCall reduce{call};
  Value x = call[0];
  for (const int64_t axis : reduce.axes) {
    while (!(call.b.shape(x)[static_cast<size_t>(axis)] == 1)) {
      const Ints sizes = call.b.shape(x).sizes();
      const auto at = static_cast<size_t>(axis);
      if (sizes[at] == 0) {
        Ints one = sizes;
        one[at] = 1;
        x = call.b.broadcast(call.scalar(call.b.dtype(x), 1), Shape(one));
        break;
      }
      const int64_t half = sizes[at] / 2;
      const auto part = [&](int64_t from, int64_t to) { return call.part(x, axis, from, to); };
      const Value both = call.b.mul(part(0, half), part(half, 2 * half));
      x = sizes[at] % 2 == 0 ? both : call.concat({both, part(2 * half, sizes[at])}, axis);
    }
  }
  if (reduce.keep) return {x};
  Shape shape;
  for (int d = 0; d < call.b.shape(x).rank(); ++d)
    if (std::find(reduce.axes.begin(), reduce.axes.end(), d) == reduce.axes.end())
      shape.push_back(call.b.shape(x)[static_cast<size_t>(d)]);
  return {call.b.reshape(x, shape)};
}
