#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(CenterCropPad) {
  const Ints wanted = call.known_ints(1);
  const int rank = call.rank(0);
  const Ints axes = call.ints("axes", onnx::numbered(0, rank));
  if (axes.size() != wanted.size()) call.refuse("it needs a size for each axis");
  Ints starts(static_cast<size_t>(rank), 0), ends = call.shape(0).sizes(), low(starts), high(starts);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(call.axis(axes[i], rank));
    const int64_t more = wanted[i] - ends[d];
    if (more >= 0) {
      low[d] = more / 2;
      high[d] = more - low[d];
    } else {
      starts[d] = -more / 2;
      ends[d] = starts[d] + wanted[i];
    }
  }
  const Value part = call.graph.add("slice", {call[0]}, {{"starts", starts}, {"ends", ends}});
  return {call.graph.add("pad", {part}, {{"low", low}, {"high", high}})};
}
