#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(Transpose) {
  Ints reversed;
  for (int d = call.rank(0) - 1; d >= 0; --d) reversed.push_back(d);
  return {call.b.transpose(call[0], call.ints("perm", reversed))};
}
