#include <algorithm>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(Squeeze) {
  const std::optional<Ints> axes = call.axes(1, call.rank(0));
  Shape shape;
  for (int d = 0; d < call.rank(0); ++d) {
    const Dim& size = call.shape(0)[static_cast<size_t>(d)];
    const bool out = axes ? std::find(axes->begin(), axes->end(), d) != axes->end() : size == 1;
    if (!out) shape.push_back(size);
  }
  return {call.b.reshape(call[0], shape)};
}

MILLRACE_ONNX_IMPORT(Unsqueeze) {
  Ints axes = call.given(1) ? call.known_ints(1) : call.ints("axes");
  const auto rank = call.rank(0) + static_cast<int>(axes.size());
  for (int64_t& axis : axes) axis = call.axis(axis, rank);
  Shape shape;
  size_t from = 0;
  for (int d = 0; d < rank; ++d) {
    const bool added = std::find(axes.begin(), axes.end(), d) != axes.end();
    if (!added && from == call.shape(0).size()) call.refuse("two of its axes are the same");
    shape.push_back(added ? Dim(1) : call.shape(0)[from++]);
  }
  return {call.b.reshape(call[0], shape)};
}
