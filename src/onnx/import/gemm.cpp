#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(Gemm) {
  const double alpha = call.number("alpha", 1), beta = call.number("beta", 1);
  Value y = call.b.matmul(call[0], call[1], call.integer("transA", 0) != 0, call.integer("transB", 0) != 0);
  if (alpha != 1) y = call.b.mul(y, alpha);
  if (!call.given(2) || beta == 0) return {y};
  const Value c = beta == 1 ? call[2] : call.b.mul(call[2], beta);
  return {call.b.add(y, c)};
}
