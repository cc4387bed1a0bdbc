// What the losses share: reduction over the items, result types, samples.
#pragma once

#include <millrace/operator.h>

#include "ops/build.h"

namespace millrace::ops {

/// Attribute `reduction`: "mean", "sum" or "none".
AttributeSpec reduction_attribute();

/// The type of a loss over `items`: f32 for 16-bit floats; checks the attribute.
Type loss_type(const TypeContext& context, const Shape& items);
/// Type rule of losses that compare a prediction with a target of the same type, element by element.
std::vector<Type> elementwise_loss_types(const TypeContext& context);

/// `items` reduced as the attribute says.
Value reduce_loss(Build& b, Value items, const Attributes& attributes);
/// The gradient of reduce_loss: what arrived for the loss, spread over the items.
Value spread_loss_gradient(Build& b, Value gradient, const Shape& items, const Attributes& attributes);

/// Every sample once with each reduction.
std::vector<Sample> with_reductions(const std::vector<Sample>& samples);
/// Samples of element-wise losses.
std::vector<Sample> elementwise_loss_samples();

}  // namespace millrace::ops
