#include <algorithm>
#include <cmath>

#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(Range) {
  if (call.item(0).between || call.item(1).between) {  // from one size to another
    const auto from = call.sizes_said(0), to = call.sizes_said(1);
    const int64_t step = call.known_int(2);
    if (from.least.size() != 1 || to.most.size() != 1) call.refuse("its limits are not one number each");
    constexpr int64_t far = int64_t{1} << 48;
    if (from.least.at(0) < -far || to.most.at(0) > far || step > far) call.refuse("it has too many elements");
    if (step < 1) call.refuse_sizes("its limits depend on data, and it does not go upwards");
    const int64_t most = std::max<int64_t>(to.most.at(0) - from.least.at(0) + step - 1, 0) / step;
    const Value start = call.element(from.values, 0), end = call.element(to.values, 0);
    const Value distance = call.b.binary("maximum", call.b.sub(end, start), call.whole(0));
    const Value count = call.b.binary("div", call.b.add(distance, call.whole(step - 1)), call.whole(step));
    const Value steps = call.places({most}, 0);
    const Value all = call.b.add(call.b.mul(steps, static_cast<double>(step)), start);
    return {onnx::Item::bounded(call.b.cast(all, call.dtype(0)), 0, count)};
  }
  const double start = call.known_number(0), limit = call.known_number(1), delta = call.known_number(2);
  if (delta == 0) call.refuse("its delta is 0");
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (!(count < 1e12)) call.refuse("it has too many elements");
  const Value steps =
      call.graph.add("iota", {}, {{"shape", Shape{static_cast<int64_t>(count)}}, {"dtype", call.dtype(0)}});
  return {call.b.add(call.b.mul(steps, delta), start)};
}
