// What activation functions share.
#pragma once

#include <string>

#include <millrace/operator.h>

#include "ops/build.h"

namespace millrace::ops {

/// A composite of one float operand and a result of its type, with samples. `body` is given the operand
/// widened to f32 when it is a 16-bit float; the result is rounded back.
Operator activation(std::string_view name, std::string_view doc, std::vector<AttributeSpec> attributes,
                    std::function<Value(Build&, Value, const Attributes&)> body);

/// Written as one ONNX node with the attribute `alpha`.
std::function<std::vector<std::string>(const OnnxCall&)> onnx_with_alpha(const std::string& type);

}  // namespace millrace::ops
