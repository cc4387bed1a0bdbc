#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

/// Each sample turned round up to its own length.
MILLRACE_ONNX_IMPORT(ReverseSequence) {
  const int64_t batch = call.axis(call.integer("batch_axis", 1), call.rank(0)),
                time = call.axis(call.integer("time_axis", 0), call.rank(0));
  if (batch + time != 1) call.refuse("batch and time must be the first two axes");
  const Ints s = call.shape(0).sizes();
  const Shape both{s[0], s[1]};
  const Value step = call.places(both, time), sample = call.places(both, batch);
  Shape lengths{1, 1};
  lengths[static_cast<size_t>(batch)] = s[static_cast<size_t>(batch)];
  const Value length = call.b.broadcast(call.b.reshape(call.b.cast(call[1], i64), lengths), both);
  const Value turned =
      call.b.select(call.graph.add("less", {step, length}), call.b.sub(call.b.sub(length, step), 1), step);
  const double row = static_cast<double>(s[1]);
  const Value flat =
      time == 0 ? call.b.add(call.b.mul(turned, row), sample) : call.b.add(call.b.mul(sample, row), turned);
  Shape table{s[0] * s[1]};
  for (size_t d = 2; d < s.size(); ++d) table.emplace_back(s[d]);
  return {call.gather(call.b.reshape(call[0], table), flat, 0)};
}
