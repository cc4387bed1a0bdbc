#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "onnx/import/bounded.h"
#include "onnx/import/places.h"

using namespace millrace;
using onnx::Ints;
using onnx::Item;

namespace {

/// The positions start, start + step … before end, by numpy's rules, except that what begins before the first
/// place begins there, backwards too: first, last one's successor (in that direction) and step.
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
  start = std::min(std::max<int64_t>(from_end(start), 0), most);
  end = end < -size ? least : std::clamp(from_end(end), least, most);
  return {start, end, step};
}

/// A Slice's starts or ends: known, between bounds, or any numbers that are known when the model runs.
using Limits = onnx::ImportCall::Said;

Limits limits_of(onnx::ImportCall& call, int k) {
  if (call.known(k) || call.item(k).between) return call.sizes_said(k);
  const Value list = call.b.reshape(call.b.cast(call[k], i64), {call.shape(k).count()});
  const auto count = static_cast<size_t>(call.b.shape(list)[0].size());
  return {Ints(count, INT64_MIN), Ints(count, INT64_MAX), list};
}

/// At most so many positions there are, of `size`.
int64_t most_of(const Limits& starts, const Limits& ends, size_t i, int64_t step, int64_t size) {
  const int64_t start = starts.least[i], end = ends.most[i];
  int64_t distance = size;
  if (step > 0 && starts.known(i)) {
    if (start >= 0) distance = std::min(end >= 0 && ends.least[i] >= 0 ? end : size, size) - start;
    if (start < 0 && start > -size) distance = -start;
  } else if (step > 0 && end >= 0 && ends.least[i] >= 0) {
    distance = std::min(end, size);
  }
  const int64_t by = std::abs(step);
  return std::max<int64_t>((std::clamp<int64_t>(distance, 0, size) - 1 + by) / by, 0);
}

/// One axis is cut when the model runs: how large it is, or where it is cut, is known then.
onnx::Items cut_at_run_time(onnx::ImportCall& call, const Limits& starts, const Limits& ends,
                            const Ints& axes, const Ints& steps) {
  Item x = call.item(0);
  for (size_t i = 0; i < starts.most.size(); ++i) {
    const int rank = call.b.shape(x.value).rank();
    const int64_t axis = call.axis(axes[i], rank),
                  size = call.b.shape(x.value)[static_cast<size_t>(axis)].size();
    if (steps[i] == 0 || steps[i] == INT64_MIN) call.refuse("a step of it is 0");
    const bool own = x.bounded_axis == axis, known = starts.known(i) && ends.known(i);
    if (known && !own) {
      const Range range = clipped(starts.most[i], ends.most[i], steps[i], size);
      if (steps[i] < 0)
        call.refuse_sizes("it goes backwards along one axis, and another one's size depends on data");
      Ints from(static_cast<size_t>(rank), 0), to = call.b.shape(x.value).sizes(),
                                               by(static_cast<size_t>(rank), 1);
      from[static_cast<size_t>(axis)] = range.count() > 0 ? range.start : 0;
      to[static_cast<size_t>(axis)] = range.count() > 0 ? range.end : 0;
      by[static_cast<size_t>(axis)] = steps[i];
      x.value = call.graph.add("slice", {x.value}, {{"starts", from}, {"ends", to}, {"steps", by}});
      continue;
    }
    if (x.bounded_axis >= 0 && !own) call.refuse_two_sizes();
    if (known && steps[i] == 1 && starts.most[i] == 0 && ends.most[i] >= size) continue;  // all of it
    x = onnx::picked(call, x.value, axis, own ? x.size : call.whole(size),
                     {call.element(starts.values, static_cast<int64_t>(i)),
                      call.element(ends.values, static_cast<int64_t>(i)), steps[i],
                      most_of(starts, ends, i, steps[i], size)});
  }
  return {x};
}

}  // namespace

MILLRACE_ONNX_IMPORT(Slice) {
  const bool old = call.opset < 10;
  const Ints sizes = call.graph.type(call.buffer(0)).shape.sizes();
  const auto listed = [&](const char* name) {
    const Ints list = call.ints(name);
    return Limits{list, list, call.ints_constant(list)};
  };
  const Limits first = old ? listed("starts") : limits_of(call, 1),
               last = old ? listed("ends") : limits_of(call, 2);
  const Ints &starts = first.most, &ends = last.most;
  Ints axes = onnx::numbered(0, std::ssize(starts)), steps(starts.size(), 1);
  if (old) axes = call.ints("axes", axes);
  if (call.given(3)) axes = call.known_ints(3);
  if (call.given(4)) steps = call.known_ints(4);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    call.refuse("starts, ends, axes and steps are not as many");
  if (call.bounded(0) || !first.known() || !last.known())
    return cut_at_run_time(call, first, last, axes, steps);
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
