#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(Identity) {
  return {call.count() > 0 && !call.given(0) ? onnx::Item::empty() : call.item(0)};
}
