#include "ops/loss.h"

#include "base/format.h"
#include "ops/axis.h"

namespace millrace::ops {

AttributeSpec reduction_attribute() {
  return {"reduction", Attribute(std::string("mean")), "mean or sum over all items, or none"};
}

Type loss_type(const TypeContext& context, const Shape& items) {
  const std::string& reduction = context.attributes.get<std::string>("reduction");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    context.error(fmt::format("reduction must be mean, sum or none, not '{}'", reduction));
  return {wide(context.operands[0].dtype), reduction == "none" ? items : Shape{}};
}

std::vector<Type> elementwise_loss_types(const TypeContext& context) {
  if (context.operands[0] != context.operands[1])
    context.error("prediction and target must have the same type");
  if (!context.operands[0].dtype.is_float()) context.error("dtype is not supported");
  return {loss_type(context, context.operands[0].shape)};
}

Value reduce_loss(Build& b, Value items, const Attributes& attributes) {
  const std::string& reduction = attributes.get<std::string>("reduction");
  const int rank = b.shape(items).rank();
  if (reduction == "none" || rank == 0) return items;
  const std::vector<int64_t> all = trailing_axes(0, rank);
  return reduction == "mean" ? b.mean(items, all, false) : b.sum(items, all, false);
}

Value spread_loss_gradient(Build& b, Value gradient, const Shape& items, const Attributes& attributes) {
  if (attributes.get<std::string>("reduction") == "mean")
    gradient = b.mul(gradient, 1 / static_cast<double>(items.count()));
  return b.broadcast(gradient, items);
}

std::vector<Sample> with_reductions(const std::vector<Sample>& samples) {
  std::vector<Sample> all;
  for (const char* reduction : {"mean", "sum", "none"})
    for (Sample sample : samples) {
      sample.attributes.set("reduction", std::string(reduction));
      all.push_back(std::move(sample));
    }
  return all;
}

std::vector<Sample> elementwise_loss_samples() {
  std::vector<Sample> samples;
  for (const DType dtype : {f32, f64, bf16, f16})
    samples.push_back({.operands = {{dtype, {3, 5}}, {dtype, {3, 5}}}});
  samples.push_back({.operands = {{f32, {}}, {f32, {}}}});
  samples.push_back({.operands = {{f32, {1}}, {f32, {1}}}});
  samples.push_back({.operands = {{f32, {7, 1, 11}}, {f32, {7, 1, 11}}}});
  samples.push_back(
      {.operands = {{f32, {0, 3}}, {f32, {0, 3}}}, .check_gradient = false});  // the mean is NaN
  return with_reductions(samples);
}

}  // namespace millrace::ops
