// Element-wise functions of tensors.
#include <millrace/tensor.h>

#include "base/format.h"
#include "trace/functions.h"
#include "trace/node.h"

namespace millrace {
namespace trace {

Tensor unary(std::string_view op, const In& a, Attributes attributes) {
  return apply(op, std::span(&a.tensor, 1), std::move(attributes), a.where)[0];
}

Tensor operand(const Operand& b, DType dtype, const std::source_location& where) {
  if (b.tensor) return *b.tensor;
  Array value = Array::scalar(dtype, b.number);
  if (!dtype.is_float() && value.at(0) != b.number)
    fail<TypeError>("{}: {} is not a value of {}; cast the tensor first", place(where), b.number,
                    dtype.name());
  return apply("constant", {}, {{"value", std::move(value)}}, where)[0];
}

Tensor binary(std::string_view op, const In& a, const Operand& b) {
  Tensor right = operand(b, a.tensor.dtype(), a.where);
  // Like numbers, what item() gave takes the tensor's dtype.
  if (b.from_item) right = cast({right, a.where}, a.tensor.dtype());
  Tensor left = a.tensor;
  if (left.shape() != right.shape()) {
    Shape shape;
    try {
      shape = broadcast_shapes(left.shape(), right.shape());
    } catch (const TypeError&) {
      const std::string& layer = current_layer();
      fail<TypeError>("{}({}, {}): the shapes cannot be broadcast to one another (in layer '{}')", op,
                      left.type().str(), right.type().str(), layer.empty() ? place(a.where) : layer);
    }
    left = broadcast_to({left, a.where}, shape);
    right = broadcast_to({right, a.where}, shape);
  }
  const Tensor both[] = {left, right};
  return apply(op, both, {}, a.where)[0];
}

int axis_of(const In& a, int axis, std::string_view function) {
  const int at = axis < 0 ? axis + a.tensor.rank() : axis;
  if (at < 0 || at >= a.tensor.rank())
    fail<TypeError>("{}: {} has no axis {} (in layer '{}')", function, a.tensor.type().str(), axis,
                    current_layer().empty() ? place(a.where) : current_layer());
  return at;
}

}  // namespace trace

using trace::binary;
using trace::unary;

Tensor operator+(const In& a, const Operand& b) { return binary("add", a, b); }
Tensor operator-(const In& a, const Operand& b) { return binary("sub", a, b); }
Tensor operator*(const In& a, const Operand& b) { return binary("mul", a, b); }
Tensor operator/(const In& a, const Operand& b) { return binary("div", a, b); }
Tensor operator<(const In& a, const Operand& b) { return binary("less", a, b); }
Tensor operator<=(const In& a, const Operand& b) { return binary("less_equal", a, b); }
Tensor operator>(const In& a, const Operand& b) { return binary("greater", a, b); }
Tensor operator>=(const In& a, const Operand& b) { return binary("greater_equal", a, b); }
Tensor operator-(const In& a) { return unary("neg", a); }

Tensor reversed(std::string_view op, double a, const In& b) {
  const Tensor left = trace::operand(Operand(a), b.tensor.dtype(), b.where);
  return binary(op, {left, b.where}, {b.tensor, b.where});
}

Tensor equal(const In& a, const Operand& b) { return binary("equal", a, b); }
Tensor not_equal(const In& a, const Operand& b) { return binary("not_equal", a, b); }
Tensor maximum(const In& a, const Operand& b) { return binary("maximum", a, b); }
Tensor minimum(const In& a, const Operand& b) { return binary("minimum", a, b); }
Tensor pow(const In& a, const Operand& b) { return binary("pow", a, b); }
Tensor logical_and(const In& a, const Operand& b) { return binary("logical_and", a, b); }
Tensor logical_or(const In& a, const Operand& b) { return binary("logical_or", a, b); }
Tensor logical_not(const In& a) { return unary("logical_not", a); }
Tensor exp(const In& a) { return unary("exp", a); }
Tensor log(const In& a) { return unary("log", a); }
Tensor sqrt(const In& a) { return unary("sqrt", a); }
Tensor rsqrt(const In& a) { return unary("rsqrt", a); }
Tensor abs(const In& a) { return unary("abs", a); }
Tensor tanh(const In& a) { return unary("tanh", a); }
Tensor erf(const In& a) { return unary("erf", a); }
Tensor sigmoid(const In& a) { return unary("sigmoid", a); }
Tensor relu(const In& a) { return unary("relu", a); }
Tensor gelu(const In& a) { return unary("gelu", a); }
Tensor silu(const In& a) { return unary("silu", a); }
Tensor clamp(const In& a, double low, double high) {
  return unary("clamp", a, {{"low", low}, {"high", high}});
}
Tensor cast(const In& a, DType dtype) {
  return a.tensor.dtype() == dtype ? a.tensor : unary("cast", a, {{"dtype", dtype}});
}

Tensor where(const In& condition, const Operand& a, const Operand& b) {
  const DType dtype = a.tensor ? a.tensor->dtype() : b.tensor ? b.tensor->dtype() : f32;
  Tensor yes = trace::operand(a, dtype, condition.where), no = trace::operand(b, dtype, condition.where);
  const Shape shape = broadcast_shapes(condition.tensor.shape(), broadcast_shapes(yes.shape(), no.shape()));
  const Tensor all[] = {broadcast_to({condition.tensor, condition.where}, shape),
                        broadcast_to({yes, condition.where}, shape),
                        broadcast_to({no, condition.where}, shape)};
  return apply("select", all, {}, condition.where)[0];
}

}  // namespace millrace
