// Products and pooling of tensors.
#include <numeric>
#include <utility>

#include "base/format.h"
#include "trace/functions.h"
#include "trace/node.h"

namespace millrace {

using trace::unary;

Tensor matmul(const In& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  const int rank = a.tensor.rank();
  const Attributes attributes = {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}};
  if (b.rank() == 2 && rank > 2 && transpose_a) {
    std::vector<int64_t> turned(static_cast<size_t>(rank));
    std::iota(turned.begin(), turned.end(), int64_t{0});
    std::swap(turned[turned.size() - 2], turned.back());
    return matmul({transpose(a, turned), a.where}, b, false, transpose_b);
  }
  if (b.rank() == 2 && rank > 2) {
    // One product of all rows.
    const Shape& from = a.tensor.shape();
    Shape shape(from.begin(), from.end() - 1);
    const Tensor both[] = {reshape(a, {shape.elements(), from.back()}), b};
    shape.push_back(b.dim(transpose_b ? 0 : 1));
    return reshape({apply("matmul", both, attributes, a.where)[0], a.where}, shape);
  }
  const Tensor both[] = {a.tensor, b};
  return apply("matmul", both, attributes, a.where)[0];
}

Tensor linear(const In& x, const Tensor& weight, const Tensor& bias) {
  if (x.tensor.rank() < 2 || !(x.tensor.dim(-1) == weight.dim(1)))
    fail<TypeError>("linear: {} given, [..., {}] expected (in layer '{}')", x.tensor.type().str(),
                    weight.dim(1).str(),
                    trace::current_layer().empty() ? trace::place(x.where) : trace::current_layer());
  const Tensor y = matmul(x, weight, false, true);
  return bias.defined() ? In(y, x.where) + Operand(bias) : y;
}

Tensor conv2d(const In& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  const Tensor both[] = {x.tensor, weight};
  const Tensor y = apply("conv2d", both,
                         {{"strides", options.strides},
                          {"pads", options.pads},
                          {"dilations", options.dilations},
                          {"groups", options.groups}},
                         x.where)[0];
  if (!bias.defined()) return y;
  return In(y, x.where) + Operand(reshape({bias, x.where}, {1, bias.dim(0), 1, 1}));
}

Tensor max_pool2d(const In& x, const std::vector<int64_t>& kernel, const std::vector<int64_t>& strides,
                  const std::vector<int64_t>& pads) {
  return unary("max_pool2d", x, {{"kernel", kernel}, {"strides", strides}, {"pads", pads}});
}

Tensor avg_pool2d(const In& x, const std::vector<int64_t>& kernel, const std::vector<int64_t>& strides,
                  const std::vector<int64_t>& pads) {
  return unary("avg_pool2d", x,
               {{"kernel", kernel}, {"strides", strides}, {"pads", pads}, {"count_include_pad", false}});
}

}  // namespace millrace
