#include "ops/loss.h"

#include "ops/axis.h"

namespace millrace::ops {

AttributeSpec reduction_attribute() {
  return {"reduction",
          Attribute(std::string("mean")),
          "mean or sum over all items, or none",
          {.choices = {"mean", "sum", "none"}}};
}

Type loss_type(const TypeContext& context, const Shape& items) {
  const bool reduced = context.attributes.get<std::string>("reduction") != "none";
  return {wide(context.operands[0].dtype), reduced ? Shape{} : items};
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

Operator elementwise_loss(std::string_view name, std::string_view doc,
                          std::function<Value(Build&, Value, Value, const Attributes&)> items) {
  Operator op;
  op.name = name;
  op.op_class = OpClass::composite;
  op.doc = doc;
  op.min_operands = op.max_operands = 2;
  op.attributes = {reduction_attribute()};
  op.types = [](const TypeContext& c) {
    if (c.operands[0] != c.operands[1]) c.error("prediction and target must have the same type");
    if (!c.operands[0].dtype.is_float()) c.error("dtype is not supported");
    return std::vector<Type>{loss_type(c, c.operands[0].shape)};
  };
  op.body = [items](Graph& graph, std::span<const Value> operands, const Attributes& attributes) {
    Build b(graph);
    const Value prediction = b.widen(operands[0]), target = b.widen(operands[1]);
    return std::vector<Value>{reduce_loss(b, items(b, prediction, target, attributes), attributes)};
  };
  for (const DType dtype : {f32, f64, bf16, f16})
    op.samples.push_back({.operands = {{dtype, {3, 5}}, {dtype, {3, 5}}}});
  op.samples.push_back({.operands = {{f32, {}}, {f32, {}}}});
  op.samples.push_back({.operands = {{f32, {1}}, {f32, {1}}}});
  op.samples.push_back({.operands = {{f32, {7, 1, 11}}, {f32, {7, 1, 11}}}});
  op.samples.push_back(
      {.operands = {{f32, {0, 3}}, {f32, {0, 3}}}, .check_gradient = false});  // the mean is NaN
  op.samples = with_reductions(op.samples);
  return op;
}

}  // namespace millrace::ops
