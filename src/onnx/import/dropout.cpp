#include "onnx/import/call.h"

using namespace millrace;

/// In inference nothing is dropped; the mask says so.
MILLRACE_ONNX_IMPORT(Dropout) {
  const bool training = call.given(2) && call.known_number(2) != 0;
  if (training && (!call.given(1) || call.known_number(1) != 0))
    call.refuse("dropout in training mode draws random numbers");
  return {call[0], call.b.broadcast(call.scalar(boolean, 1), call.shape(0))};
}
