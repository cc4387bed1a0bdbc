// A choice between two values in ONNX.
#pragma once

#include <string>

#include <millrace/onnx_rule.h>

namespace millrace::ops {

/// ONNX's Where, by dtypes that ONNX Runtime has it for.
std::string onnx_where(OnnxBuilder& onnx, const std::string& condition, const std::string& if_true,
                       const std::string& if_false, DType dtype);

}  // namespace millrace::ops
