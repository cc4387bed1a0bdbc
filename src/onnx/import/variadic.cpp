#include "onnx/import/call.h"

using namespace millrace;

namespace {

std::vector<Value> over_all(onnx::ImportCall& call, std::string_view op) {
  Value result = call[0];
  for (int k = 1; k < call.count(); ++k) result = call.b.binary(op, result, call[k]);
  return {result};
}

}  // namespace

MILLRACE_ONNX_IMPORT(Max) { return over_all(call, "maximum"); }
MILLRACE_ONNX_IMPORT(Min) { return over_all(call, "minimum"); }
MILLRACE_ONNX_IMPORT(Sum) { return over_all(call, "add"); }
MILLRACE_ONNX_IMPORT(Mean) { return {call.b.div(over_all(call, "add")[0], call.count())}; }
