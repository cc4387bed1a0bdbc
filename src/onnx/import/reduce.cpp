#include <algorithm>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

// ReduceSum and the other Reduce….
namespace {

using Reduce = Value (*)(onnx::ImportCall&, Value, const Ints&, bool);

std::vector<Value> reduced(onnx::ImportCall& call, const Reduce& reduce) {
  const Ints axes = call.reduced_axes(call.rank(0));
  return {reduce(call, call[0], axes, axes.empty() || call.integer("keepdims", 1) != 0)};
}

/// Over no axis each element is alone.
Value over(onnx::ImportCall& call, std::string_view op, Value x, const Ints& axes, bool keep) {
  return axes.empty() ? x : call.graph.add(op, {x}, {{"axes", axes}, {"keep_dims", keep}});
}

Value sum(onnx::ImportCall& call, Value x, const Ints& axes, bool keep) {
  return over(call, "sum", x, axes, keep);
}

Value log_sum_exp(onnx::ImportCall& call, Value x, const Ints& axes, bool keep) {
  if (axes.empty()) return x;
  const Value largest = over(call, "max", x, axes, true);
  const Value finite = call.b.select(call.graph.add("is_finite", {largest}), largest, call.fill(largest, 0));
  const Value total = sum(call, call.graph.add("exp", {call.b.sub(x, finite)}), axes, true);
  const Value result = call.b.add(call.graph.add("log", {total}), finite);
  if (keep) return result;
  return sum(call, result, axes, false);
}

/// Element by element, by halves.
Value product(onnx::ImportCall& call, Value x, const Ints& axes, bool keep) {
  for (const int64_t axis : axes) {
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
      if (sizes[at] % 2 == 0)
        x = both;
      else
        x = call.graph.add("concat", {both, part(2 * half, sizes[at])}, {{"axis", axis}});
    }
  }
  if (keep) return x;
  Shape shape;
  for (int d = 0; d < call.b.shape(x).rank(); ++d)
    if (std::find(axes.begin(), axes.end(), d) == axes.end())
      shape.push_back(call.b.shape(x)[static_cast<size_t>(d)]);
  return call.b.reshape(x, shape);
}

/// Of bools max is "any", min is "all".
Value extreme(onnx::ImportCall& call, std::string_view op, Value x, const Ints& axes, bool keep) {
  const DType dtype = call.b.dtype(x);
  if (!dtype.is_bool()) return over(call, op, x, axes, keep);
  return call.b.cast(over(call, op, call.b.cast(x, u8), axes, keep), boolean);
}

}  // namespace

MILLRACE_ONNX_IMPORT(ReduceSum) { return reduced(call, sum); }
MILLRACE_ONNX_IMPORT(ReduceMean) {
  return reduced(call, [](onnx::ImportCall& c, Value x, const Ints& axes, bool keep) {
    return over(c, "mean", x, axes, keep);
  });
}
MILLRACE_ONNX_IMPORT(ReduceMax) {
  return reduced(call, [](onnx::ImportCall& c, Value x, const Ints& axes, bool keep) {
    return extreme(c, "max", x, axes, keep);
  });
}
MILLRACE_ONNX_IMPORT(ReduceMin) {
  return reduced(call, [](onnx::ImportCall& c, Value x, const Ints& axes, bool keep) {
    return extreme(c, "min", x, axes, keep);
  });
}
MILLRACE_ONNX_IMPORT(ReduceProd) { return reduced(call, product); }
MILLRACE_ONNX_IMPORT(ReduceSumSquare) {
  return reduced(call, [](onnx::ImportCall& c, Value x, const Ints& axes, bool keep) {
    return sum(c, c.b.mul(x, x), axes, keep);
  });
}
MILLRACE_ONNX_IMPORT(ReduceL1) {
  return reduced(call, [](onnx::ImportCall& c, Value x, const Ints& axes, bool keep) {
    return sum(c, c.graph.add("abs", {x}), axes, keep);
  });
}
MILLRACE_ONNX_IMPORT(ReduceL2) {
  return reduced(call, [](onnx::ImportCall& c, Value x, const Ints& axes, bool keep) {
    return c.graph.add("sqrt", {sum(c, c.b.mul(x, x), axes, keep)});
  });
}
MILLRACE_ONNX_IMPORT(ReduceLogSum) {
  return reduced(call, [](onnx::ImportCall& c, Value x, const Ints& axes, bool keep) {
    return c.graph.add("log", {sum(c, x, axes, keep)});
  });
}
MILLRACE_ONNX_IMPORT(ReduceLogSumExp) { return reduced(call, log_sum_exp); }
