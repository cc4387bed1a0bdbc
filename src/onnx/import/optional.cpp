#include "onnx/import/call.h"

using namespace millrace;
using onnx::Item;

// Whether an optional holds something is known while the model is imported.

MILLRACE_ONNX_IMPORT(Optional) { return {call.given(0) ? call.item(0) : Item::empty()}; }

MILLRACE_ONNX_IMPORT(OptionalHasElement) { return {call.scalar(boolean, call.given(0) ? 1 : 0)}; }

MILLRACE_ONNX_IMPORT(OptionalGetElement) {
  if (!call.given(0)) call.refuse("its optional holds nothing");
  return {call.item(0)};
}
