#include "onnx/import/bounded.h"

namespace millrace::onnx {

Chosen chosen(ImportCall& call, Value mask) {
  const int64_t n = call.b.shape(mask)[0].size();
  const Value ones = call.b.cast(mask, i64);
  // How many hold before each: sums over 1, 2, 4 … positions.
  Value sums = ones;
  for (int64_t by = 1; by < n; by *= 2) {
    const Value part = call.graph.add("slice", {sums}, {{"starts", Ints{0}}, {"ends", Ints{n - by}}});
    sums = call.b.add(sums, call.graph.add("pad", {part}, {{"low", Ints{by}}, {"high", Ints{0}}}));
  }
  const Value place =
      call.b.select(mask, call.b.sub(sums, 1), call.fill(sums, static_cast<double>(n)));  // n: nowhere
  const Value own = call.graph.add("iota", {}, {{"shape", Shape{n}}, {"axis", int64_t{0}}});
  return {call.graph.add("scatter_add", {call.fill(own, 0), place, own}, {{"axis", int64_t{0}}}),
          call.b.sum(ones, {0}, false)};
}

}  // namespace millrace::onnx
