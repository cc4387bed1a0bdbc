#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(Reshape) {
  Ints wanted = call.opset < 5 ? call.ints("shape") : call.known_ints(1);
  const Ints have = call.shape(0).sizes();
  int64_t rest = -1, others = 1;
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (wanted[d] == 0 && call.integer("allowzero", 0) == 0) {
      if (d >= have.size()) call.refuse("it keeps a dimension that is not there");
      wanted[d] = have[d];
    }
    if (wanted[d] == -1) {
      if (rest >= 0) call.refuse("two of its sizes are -1");
      rest = static_cast<int64_t>(d);
    } else {
      others *= wanted[d];
    }
  }
  if (rest >= 0) wanted[static_cast<size_t>(rest)] = others == 0 ? 0 : call.shape(0).count() / others;
  return {call.b.reshape(call[0], Shape(wanted))};
}

MILLRACE_ONNX_IMPORT(Flatten) {
  const int rank = call.rank(0);
  int64_t axis = call.integer("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) call.refuse("it has no such axis");
  int64_t before = 1, behind = 1;
  for (int d = 0; d < rank; ++d) (d < axis ? before : behind) *= call.shape(0)[static_cast<size_t>(d)].size();
  return {call.b.reshape(call[0], {before, behind})};
}
