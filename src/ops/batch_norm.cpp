#include "ops/axis.h"
#include "ops/norm.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> batch_norm_types(const TypeContext& c) {
  const Shape channels = ops::channels_of(c);
  ops::check_parameter(c, 1, "the weight", channels);
  ops::check_parameter(c, 2, "the bias", channels);
  const Type statistic{ops::wide(c.operands[0].dtype), channels};
  return {c.operands[0], statistic, statistic};
}

/// Sums over the batch and the places are made in two levels where pictures are large: a picture's sums can
/// be computed while what makes the picture still has it in the cache, and no value of the batch is needed
/// for them.
bool by_picture(const Shape& x) {
  int64_t places = 1;
  for (int d = 2; d < x.rank(); ++d) places *= x[d].size();
  return x.rank() > 2 && places >= 16;
}

Value sum_of_channels(ops::Build& b, Value v) {
  const int rank = b.shape(v).rank();
  if (!by_picture(b.shape(v))) return b.sum(v, ops::all_but_channels(rank), false);
  return b.sum(b.sum(v, ops::trailing_axes(2, rank), false), {0}, false);
}

struct Moments {
  Value mean, variance;
};

/// Of each channel. The variance is not the mean of squares minus the square of the mean, which would cancel.
Moments moments_of_channels(ops::Build& b, Value x) {
  const int rank = b.shape(x).rank();
  if (!by_picture(b.shape(x))) {
    const auto axes = ops::all_but_channels(rank);
    const Value mean = b.mean(x, axes, false), centred = b.sub(x, ops::per_channel(b, mean, rank));
    return {mean, b.mean(b.mul(centred, centred), axes, false)};
  }
  // Of each picture, and then put together (Chan, Golub, LeVeque, 1979).
  const auto places = ops::trailing_axes(2, rank);
  const Value means = b.mean(x, places, true), centred = b.sub(x, means);
  const Value variances = b.mean(b.mul(centred, centred), places, false);
  const Value each = b.reshape(means, b.shape(variances)), mean = b.mean(each, {0}, false);
  const Value apart = b.sub(each, mean);
  return {mean, b.mean(b.add(variances, b.mul(apart, apart)), {0}, false)};
}

std::vector<Value> batch_norm_body(Graph& graph, std::span<const Value> operands,
                                   const Attributes& attributes) {
  ops::Build b(graph);
  const Value x = b.widen(operands[0]), weight = b.widen(operands[1]), bias = b.widen(operands[2]);
  const int rank = b.shape(x).rank();
  const auto [mean, variance] = moments_of_channels(b, x);
  const Value centred = b.sub(x, ops::per_channel(b, mean, rank));
  const Value scale = b.mul(weight, b.unary("rsqrt", b.add(variance, attributes.number("eps"))));
  const Value y = b.add(b.mul(centred, ops::per_channel(b, scale, rank)), ops::per_channel(b, bias, rank));
  return {b.cast(y, b.dtype(operands[0])), mean, variance};
}

/// With r = 1/sqrt(variance + eps), c = x − mean and n elements a channel:
///   dx = weight·r·g − c·(weight·r³·sum(g·c)/n − 2·dvariance/n) − (weight·r·sum(g) − dmean)/n
/// so that one pass over x and g makes the sums and a second one dx.
std::vector<Value> batch_norm_gradient(const GradientContext& c) {
  ops::Build b(c.graph);
  const Value x = b.widen(c.operands[0]);
  const int rank = b.shape(x).rank();
  const auto axes = ops::all_but_channels(rank);
  double n = 1;
  for (int64_t axis : axes) n *= static_cast<double>(b.shape(x)[axis].size());
  const Value centred = b.sub(x, ops::per_channel(b, c.results[1], rank));
  const Value r = b.unary("rsqrt", b.add(c.results[2], c.node.attributes.number("eps")));
  std::vector<Value> parts(3);
  Value dx, slope, offset;  // dx = direct + centred · slope + offset
  if (const Value arrived = c.result_gradients[0]; arrived.valid()) {
    const Value g = b.widen(arrived), scale = b.mul(b.widen(c.operands[1]), r);
    const Value dbias = sum_of_channels(b, g), dweight = b.mul(sum_of_channels(b, b.mul(g, centred)), r);
    parts[1] = b.cast(dweight, b.dtype(c.operands[1]));
    parts[2] = b.cast(dbias, b.dtype(c.operands[2]));
    dx = b.mul(g, ops::per_channel(b, scale, rank));
    slope = b.mul(b.mul(b.mul(scale, r), dweight), -1 / n);
    offset = b.mul(b.mul(scale, dbias), -1 / n);
  }
  const auto accumulate = [&](Value& sum, Value part) { sum = sum.valid() ? b.add(sum, part) : part; };
  if (c.result_gradients[1].valid()) accumulate(offset, b.mul(c.result_gradients[1], 1 / n));
  if (c.result_gradients[2].valid()) accumulate(slope, b.mul(c.result_gradients[2], 2 / n));
  if (slope.valid()) accumulate(dx, b.mul(centred, ops::per_channel(b, slope, rank)));
  if (offset.valid()) accumulate(dx, b.broadcast(ops::per_channel(b, offset, rank), Shape(b.shape(x))));
  parts[0] = b.cast(dx, b.dtype(c.operands[0]));
  return parts;
}

}  // namespace

MILLRACE_OPERATOR(batch_norm) {
  Operator op;
  op.name = "batch_norm";
  op.op_class = OpClass::composite;
  op.doc =
      "Training form of batch normalisation of x [batch, channels, …]: results are weight · (x − mean) / "
      "sqrt(variance + "
      "eps) + bias, and the mean and the (biased) variance of each channel over the batch, f32 for 16-bit "
      "floats. "
      "(Ioffe, Szegedy, 2015)";
  op.min_operands = op.max_operands = 3;
  op.attributes = {{"eps", Attribute(1e-5), "added to the variance", {.low = 0}}};
  op.types = batch_norm_types;
  op.body = batch_norm_body;
  op.gradient = batch_norm_gradient;
  op.tolerance = {.f32 = 5e-5, .f64 = 1e-11, .half = 3e-2};
  const auto sample = [&](DType dtype, DType parameters, const Shape& x) {
    op.samples.push_back({.operands = {{dtype, x}, {parameters, {x[1]}}, {parameters, {x[1]}}}});
  };
  sample(f32, f32, {4, 3, 5, 7});
  sample(f32, f32, {17, 5});
  sample(f32, f32, {2, 1, 3});
  sample(f32, f32, {3, 16, 4, 4});
  sample(f64, f64, {3, 2, 2, 2});
  sample(f64, f64, {5, 3});
  sample(bf16, bf16, {4, 3, 4, 4});
  sample(bf16, f32, {4, 3, 4, 4});
  sample(f16, f16, {8, 3});
  sample(f32, f32, {3, 0});
  return op;
}
