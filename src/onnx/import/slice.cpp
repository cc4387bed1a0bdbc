#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "onnx/import/places.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// The positions start, start + step … before end, by numpy's rules: first, last one's successor (in that
/// direction) and step.
struct Range {
  int64_t start, end, step;
  int64_t count() const {
    const int64_t distance = step > 0 ? end - start : start - end;
    return distance <= 0 ? 0 : (distance - 1) / std::abs(step) + 1;
  }
};

Range clipped(int64_t start, int64_t end, int64_t step, int64_t size) {
  const auto from_end = [&](int64_t at) { return at < 0 && at >= -size ? at + size : at; };
  const int64_t least = step > 0 ? 0 : -1, most = step > 0 ? size : size - 1;
  start = std::clamp(from_end(start), step > 0 ? int64_t{0} : int64_t{-1}, most);
  end = end < -size ? least : std::clamp(from_end(end), least, most);
  return {start, end, step};
}

}  // namespace

MILLRACE_ONNX_IMPORT(Slice) {
  const Ints sizes = call.shape(0).sizes();
  const bool old = call.opset < 10;
  const Ints starts = old ? call.ints("starts") : call.known_ints(1),
             ends = old ? call.ints("ends") : call.known_ints(2);
  Ints axes, steps(starts.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (old) axes = call.ints("axes", axes);
  if (call.given(3)) axes = call.known_ints(3);
  if (call.given(4)) steps = call.known_ints(4);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    call.refuse("starts, ends, axes and steps are not as many");
  Ints from(sizes.size(), 0), to = sizes, by(sizes.size(), 1), backwards;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = call.axis(axes[i], call.rank(0));
    const auto at = static_cast<size_t>(axis);
    if (steps[i] == 0 || steps[i] == INT64_MIN) call.refuse("a step of it is 0");
    const Range range = clipped(starts[i], ends[i], steps[i], sizes[at]);
    if (steps[i] < 0 && range.count() > 0) {
      // The same positions upwards, and then turned round.
      from[at] = range.start + (range.count() - 1) * range.step;
      to[at] = range.start + 1;
      by[at] = -range.step;
      backwards.push_back(axis);
    } else {
      from[at] = range.count() > 0 ? range.start : 0;
      to[at] = range.count() > 0 ? range.end : 0;
      by[at] = std::max<int64_t>(range.step, 1);
    }
  }
  Value x = call.graph.add("slice", {call[0]}, {{"starts", from}, {"ends", to}, {"steps", by}});
  for (const int64_t axis : backwards) x = turned_round(call, x, axis);
  return {x};
}
