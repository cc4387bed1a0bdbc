// What reductions share: axes, type rule, samples.
#pragma once

#include <millrace/operator.h>

namespace millrace::ops {

/// A reduction over attribute `axes` (i64 list, negative counts from the end; empty: all), `keep_dims` false
/// by default.
Operator reduction_operator(std::string_view name, std::string_view doc, Reduction reduction,
                            std::vector<DType> dtypes);

/// The operand's shape with reduced axes set to 1: the shape to broadcast a reduction's gradient from.
Shape kept_shape(const Shape& shape, const std::vector<int64_t>& axes);

/// max and min, whose gradient equal extremes share, as a whole; argmax and argmin, which have none.
Operator extreme_reduction(std::string_view name, std::string_view doc, Reduction reduction,
                           std::string_view onnx);
Operator position_reduction(std::string_view name, std::string_view doc, Reduction reduction,
                            std::string_view onnx);

/// Written as an ONNX reduction, whose axes are an operand since version `axes_given_since` of ONNX's
/// operators.
std::function<std::vector<std::string>(const OnnxCall&)> onnx_reduction(const std::string& type,
                                                                        int axes_given_since);

/// Samples for reductions over any axes.
std::vector<Sample> reduction_samples(const std::vector<DType>& dtypes);

}  // namespace millrace::ops
