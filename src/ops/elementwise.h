// What element-wise operators share: type rules and samples.
#pragma once

#include <millrace/narrow_types.h>
#include <millrace/operator.h>

namespace millrace::ops {

class Build;

/// An element-wise operator of one operand whose result has the operand's type. Samples over all its dtypes
/// included.
Operator elementwise_unary(std::string_view name, std::string_view doc,
                           std::vector<DType> dtypes = {f32, f64, bf16, f16});
/// An element-wise operator of two operands of equal type (broadcasting is explicit in graphs).
Operator elementwise_binary(std::string_view name, std::string_view doc,
                            std::vector<DType> dtypes = {f32, f64, bf16, f16, i8, u8, i16, u16, i32, u32, i64,
                                                         u64});
/// The operand that `wins` ("greater", "less") against the other; its gradient goes there, equal ones share
/// it.
Operator extreme_of_two(std::string_view name, std::string_view doc, ScalarOp scalar, std::string_view wins,
                        std::string_view onnx);
/// `op` as one scalar operation whose result moves in steps, so that it has no gradient; with its name in
/// ONNX where it has one.
Operator stepwise(Operator op, ScalarOp scalar, std::string_view onnx = {});
/// As elementwise_binary with a bool result.
Operator comparison(std::string_view name, std::string_view doc, ScalarOp scalar, std::string_view onnx = {});
/// Of the bits of two integers.
Operator bitwise(std::string_view name, std::string_view doc, ScalarOp scalar, std::string_view onnx = {});
/// A whole number near a float.
Operator rounding(std::string_view name, std::string_view doc, ScalarOp scalar, std::string_view onnx = {});
/// A question about one float: a bool result.
Operator predicate(std::string_view name, std::string_view doc);

/// all_dtypes() but for those that are only stored and converted: floats of 8 bits and less, integers of
/// less.
std::vector<DType> computed_dtypes();

/// The gradient of an operator of one operand x, from that (g) of its result y.
using UnaryGradient = Value (*)(Build& b, Value g, Value x, Value y);
std::function<std::vector<Value>(const GradientContext&)> unary_gradient(UnaryGradient gradient);

/// Sets the range that all samples of `op` draw their floats from, for operators that are not defined
/// everywhere.
void set_range(Operator& op, double low, double high);

}  // namespace millrace::ops
