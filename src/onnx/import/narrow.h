// Floats of 8 bits and less, as ONNX rounds to them.
#pragma once

#include "onnx/import/call.h"

namespace millrace::onnx {

/// x rounded to a narrow float. With `saturate` what is too large, infinities too, becomes the largest
/// number, else infinity, or NaN where the type has none.
Value narrowed(ImportCall& call, Value x, DType to, bool saturate);

}  // namespace millrace::onnx
