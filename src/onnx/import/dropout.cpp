#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

/// In inference nothing is dropped; the mask says so.
MILLRACE_ONNX_IMPORT(Dropout) {
  if (call.given(2)) {
    const Array *training = call.known(2), *ratio = call.known(1);
    const bool drops_none = ratio && ratio->count() == 1 && ratio->at(0) == 0;
    if ((!training || training->at(0) != 0) && !drops_none)
      call.refuse("dropout in training mode draws random numbers");
  }
  return {call[0], call.b.broadcast(call.scalar(boolean, 1), call.shape(0))};
}
