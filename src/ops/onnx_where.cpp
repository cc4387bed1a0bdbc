#include "ops/onnx_where.h"

namespace millrace::ops {

std::string onnx_where(OnnxBuilder& onnx, const std::string& condition, const std::string& if_true,
                       const std::string& if_false, DType dtype) {
  if (dtype.is_bool())
    return onnx.node("Or", {onnx.node("And", {condition, if_true}),
                            onnx.node("And", {onnx.node("Not", {condition}), if_false})});
  const bool direct = dtype == f32 || dtype == f64 || dtype == i32 || dtype == i64 || dtype == u8;
  if (direct) return onnx.node("Where", {condition, if_true, if_false});
  const DType wide = dtype.is_float() ? f32 : i64;  // which hold whatever it holds
  const auto cast = [&](const std::string& value, DType to) {
    return onnx.node("Cast", {value}, {{"to", onnx.data_type(to)}});
  };
  return cast(onnx.node("Where", {condition, cast(if_true, wide), cast(if_false, wide)}), dtype);
}

}  // namespace millrace::ops
