#include <algorithm>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// Positions of the result in the operand, along one axis, for a mode other than constant.
Ints mirrored(onnx::ImportCall& call, int64_t size, int64_t before, int64_t behind, const std::string& mode) {
  Ints places;
  if (size < 1) call.refuse("nothing cannot be repeated");
  for (int64_t i = -before; i < size + behind; ++i) {
    if (mode == "edge") {
      places.push_back(std::clamp<int64_t>(i, 0, size - 1));
    } else if (mode == "wrap") {
      places.push_back(((i % size) + size) % size);
    } else {
      const int64_t period = std::max<int64_t>(1, 2 * (size - 1)), at = ((i % period) + period) % period;
      places.push_back(at < size ? at : period - at);
    }
  }
  return places;
}

}  // namespace

MILLRACE_ONNX_IMPORT(Pad) {
  const bool old = call.opset < 11;
  const std::string mode = call.text("mode", "constant");
  const Ints given = old ? call.ints("pads") : call.known_ints(1);
  const auto rank = static_cast<size_t>(call.rank(0));
  Ints before(rank, 0), behind(rank, 0);
  std::optional<Ints> axes;
  if (call.given(3)) axes = call.known_ints(3);
  const size_t count = axes ? axes->size() : rank;
  if (given.size() != 2 * count) call.refuse("it needs two numbers for each axis");
  for (size_t i = 0; i < count; ++i) {
    const auto d = axes ? static_cast<size_t>(call.axis((*axes)[i], call.rank(0))) : i;
    before[d] = given[i];
    behind[d] = given[count + i];
  }
  // What is negative is taken away.
  Value x = call[0];
  Ints sizes = call.shape(0).sizes(), starts(rank, 0), ends = sizes;
  for (size_t d = 0; d < rank; ++d) {
    starts[d] = std::max<int64_t>(0, -before[d]);
    ends[d] = sizes[d] - std::max<int64_t>(0, -behind[d]);
    if (starts[d] > ends[d]) call.refuse("it takes away more than there is");
    before[d] = std::max<int64_t>(0, before[d]);
    behind[d] = std::max<int64_t>(0, behind[d]);
  }
  if (starts != Ints(rank, 0) || ends != sizes)
    x = call.graph.add("slice", {x}, {{"starts", starts}, {"ends", ends}});
  if (mode == "constant") {
    double value = old ? call.number("value", 0) : 0;
    if (call.given(2)) value = call.known_number(2);
    return {call.graph.add("pad", {x}, {{"low", before}, {"high", behind}, {"value", value}})};
  }
  for (size_t d = 0; d < rank; ++d)
    if (before[d] > 0 || behind[d] > 0)
      x = call.graph.add(
          "gather", {x, call.ints_constant(mirrored(call, ends[d] - starts[d], before[d], behind[d], mode))},
          {{"axis", static_cast<int64_t>(d)}});
  return {x};
}
