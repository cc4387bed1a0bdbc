#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(BitShift) {
  const std::string direction = call.text("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    call.refuse("it shifts in the direction '" + direction + "'");
  return {call.b.binary(direction == "LEFT" ? "shift_left" : "shift_right", call[0], call[1])};
}
