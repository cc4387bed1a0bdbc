#include "onnx/import/call.h"

using namespace millrace;

/// In inference nothing is dropped; the mask says so. A model that is trained on drops, whatever the node
/// says, which may have been written for inference.
MILLRACE_ONNX_IMPORT(Dropout) {
  if (call.learning) {
    const double share = call.given(1) ? call.known_number(1) : call.number("ratio", 0.5);
    if (!call.learning->training || share == 0)
      return {call[0], call.b.broadcast(call.scalar(boolean, 1), call.shape(0))};
    const Value y = call.graph.add("dropout", {call[0], call.learning->key}, {{"p", share}});
    return {y, call.compare("not_equal", y, 0)};
  }
  const bool training = call.given(2) && call.known_number(2) != 0;
  if (training && (!call.given(1) || call.known_number(1) != 0))
    call.refuse("dropout in training mode draws random numbers");
  return {call[0], call.b.broadcast(call.scalar(boolean, 1), call.shape(0))};
}
