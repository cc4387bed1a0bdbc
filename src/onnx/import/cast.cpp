#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

namespace {

Value cast_to(onnx::ImportCall& call, DType to) {
  const DType from = call.dtype(0);
  // To bool means "is not zero".
  if (to == boolean && from != boolean) return call.graph.add("not_equal", {call[0], call.fill(call[0], 0)});
  return call.b.cast(call[0], to);
}

}  // namespace

MILLRACE_ONNX_IMPORT(Cast) {
  const std::optional<DType> to = onnx::dtype_of(call.integer("to"));
  if (!to) call.refuse("Millrace does not compute with " + onnx::data_type_name(call.integer("to")));
  return {cast_to(call, *to)};
}

MILLRACE_ONNX_IMPORT(CastLike) { return {cast_to(call, call.dtype(1))}; }
