#include "onnx/import/places.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// The first one, or with select_last_index the last one: then of the reversed positions.
std::vector<Value> position(onnx::ImportCall& call, std::string_view op) {
  const int64_t axis = call.axis(call.integer("axis", 0), call.rank(0));
  const bool keep = call.integer("keepdims", 1) != 0, last = call.integer("select_last_index", 0) != 0;
  Value x = call[0];
  const int64_t size = call.shape(0)[static_cast<size_t>(axis)].size();
  if (last) x = turned_round(call, x, axis);
  const Value at = call.graph.add(op, {x}, {{"axes", Ints{axis}}, {"keep_dims", keep}});
  return {last ? call.b.sub(call.fill(at, static_cast<double>(size - 1)), at) : at};
}

}  // namespace

MILLRACE_ONNX_IMPORT(ArgMax) { return position(call, "argmax"); }
MILLRACE_ONNX_IMPORT(ArgMin) { return position(call, "argmin"); }
