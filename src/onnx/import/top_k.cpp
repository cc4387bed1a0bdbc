#include <utility>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(TopK) {
  const int rank = call.rank(0);
  const int64_t axis = call.axis(call.integer("axis", -1), rank);
  const Ints counts = call.opset < 10 ? Ints{call.integer("k")} : call.known_ints(1);
  if (counts.size() != 1) call.refuse("k must be one number");
  const bool smallest = call.integer("largest", 1) == 0;
  Ints swapped;
  for (int d = 0; d < rank; ++d) swapped.push_back(d);
  std::swap(swapped[static_cast<size_t>(axis)], swapped.back());
  const DType dtype = call.dtype(0);
  Value x = dtype == f64 || dtype == f32 ? call[0] : call.b.cast(call[0], dtype.is_float() ? f32 : f64);
  if (smallest) x = call.graph.add("neg", {x});
  const Value found = call.graph.add("top_k", {call.b.transpose(x, swapped)}, {{"k", counts[0]}});
  Value values = call.b.transpose(found, swapped);
  if (smallest) values = call.graph.add("neg", {values});
  return {call.b.cast(values, dtype), call.b.transpose({found.node, 1}, swapped)};
}
