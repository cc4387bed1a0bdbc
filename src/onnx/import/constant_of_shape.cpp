#include "onnx/import/bounded.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(ConstantOfShape) {
  Value value = call.scalar(f32, 0);
  if (call.has("value")) {
    const onnx::AttributeProto& given = call.attribute("value");
    if (!given.tensor) call.refuse("its value is no tensor");
    const Array one = array_of(*given.tensor, call.folder);
    if (one.count() != 1) call.refuse("its value must be one element");
    value = call.constant(one.reshaped({}));
  }
  return {onnx::expanded(call, value, call.sizes_said(0))};
}
