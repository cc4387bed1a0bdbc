// The product that ONNX's MatMul and its forms in whole numbers share.
#pragma once

#include "onnx/import/call.h"

namespace millrace::onnx {

/// a · b, of any ranks: rows and columns that are missing are added, leading dimensions broadcast (as
/// numpy.matmul).
Value multiplied(ImportCall& call, Value a, Value b);

}  // namespace millrace::onnx
