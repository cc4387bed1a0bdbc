#include "ops/elementwise.h"

#include <algorithm>

#include "ops/build.h"

namespace millrace::ops {
namespace {

bool claims(const std::vector<DType>& dtypes, DType dtype) {
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

/// Shapes every element-wise operator is tried on: rank 0, sizes 0 and 1, odd sizes, more than one vector.
std::vector<Sample> samples_for(int operands, const std::vector<DType>& dtypes) {
  std::vector<Sample> samples;
  const std::vector<Shape> shapes = {{}, {0, 3}, {1}, {17}, {3, 5, 7}, {2, 64}};
  for (const DType dtype : dtypes) {
    for (const Shape& shape : shapes) {
      if (dtype != f32 && dtype != f64 && shape.rank() == 3) continue;
      if (is_rare(dtype) && shape != Shape{17}) continue;
      Sample sample;
      sample.operands.assign(operands, Type{dtype, shape});
      if (dtype == i8) sample.int_low = -5;
      samples.push_back(sample);
    }
  }
  return samples;
}

Operator with_bool_result(Operator op) {
  op.types = [inner = op.types](const TypeContext& c) {
    std::vector<Type> types = inner(c);
    types[0].dtype = boolean;
    return types;
  };
  return op;
}

}  // namespace

Operator elementwise_unary(std::string_view name, std::string_view doc, std::vector<DType> dtypes) {
  Operator op;
  op.name = name;
  op.doc = doc;
  op.op_class = OpClass::elementwise;
  op.samples = samples_for(1, dtypes);
  op.types = [dtypes](const TypeContext& c) {
    if (!claims(dtypes, c.operands[0].dtype)) c.error("dtype is not supported");
    return std::vector<Type>{c.operands[0]};
  };
  return op;
}

Operator elementwise_binary(std::string_view name, std::string_view doc, std::vector<DType> dtypes) {
  Operator op;
  op.name = name;
  op.doc = doc;
  op.op_class = OpClass::elementwise;
  op.min_operands = op.max_operands = 2;
  op.samples = samples_for(2, dtypes);
  op.types = [dtypes](const TypeContext& c) {
    if (c.operands[0] != c.operands[1]) c.error("both operands must have the same dtype and shape");
    if (!claims(dtypes, c.operands[0].dtype)) c.error("dtype is not supported");
    return std::vector<Type>{c.operands[0]};
  };
  return op;
}

Operator extreme_of_two(std::string_view name, std::string_view doc, ScalarOp scalar, std::string_view wins,
                        std::string_view onnx) {
  Operator op = elementwise_binary(name, doc);
  set_scalar(op, scalar);
  op.gradient = [wins](const GradientContext& c) {
    Build b(c.graph);
    const Value g = c.result_gradients[0], zero = b.zeros(g);
    const Value a = c.operands[0], z = c.operands[1];
    const Value shared = b.select(b.binary("equal", a, z), b.mul(g, 0.5), zero);
    return std::vector<Value>{b.select(b.binary(wins, a, z), g, shared),
                              b.select(b.binary(wins, z, a), g, shared)};
  };
  op.arithmetic = Arithmetic::follows;
  op.onnx = {onnx};
  return op;
}

Operator stepwise(Operator op, ScalarOp scalar, std::string_view onnx) {
  set_scalar(op, scalar);
  op.differentiable = false;
  if (!onnx.empty()) op.onnx = {onnx};
  return op;
}

Operator comparison(std::string_view name, std::string_view doc, ScalarOp scalar, std::string_view onnx) {
  const std::vector<DType> dtypes = {f32, f64, bf16, f16, i8, u8, i16, u16, i32, u32, i64, u64, boolean};
  return stepwise(with_bool_result(elementwise_binary(name, doc, dtypes)), scalar, onnx);
}

Operator bitwise(std::string_view name, std::string_view doc, ScalarOp scalar, std::string_view onnx) {
  Operator op = stepwise(elementwise_binary(name, doc, {i8, u8, i16, u16, i32, u32, i64, u64}), scalar, onnx);
  if (!onnx.empty()) op.onnx_opset = 18;
  return op;
}

Operator rounding(std::string_view name, std::string_view doc, ScalarOp scalar, std::string_view onnx) {
  Operator op = stepwise(elementwise_unary(name, doc), scalar, onnx);
  set_range(op, -5, 5);
  return op;
}

Operator predicate(std::string_view name, std::string_view doc) {
  Operator op = with_bool_result(elementwise_unary(name, doc));
  op.differentiable = false;
  return op;
}

std::vector<DType> computed_dtypes() {
  std::vector<DType> list = all_dtypes();
  std::erase_if(list, is_only_stored);
  return list;
}

std::function<std::vector<Value>(const GradientContext&)> unary_gradient(UnaryGradient gradient) {
  return [gradient](const GradientContext& c) {
    Build b(c.graph);
    return std::vector<Value>{gradient(b, c.result_gradients[0], c.operands[0], c.results[0])};
  };
}

void set_range(Operator& op, double low, double high) {
  for (Sample& sample : op.samples) {
    sample.low = low;
    sample.high = high;
  }
}

}  // namespace millrace::ops
