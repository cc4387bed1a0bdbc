// What the losses share: reduction over the items, result types, samples.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include <millrace/operator.h>

#include "ops/build.h"

namespace millrace::ops {

/// Attribute `reduction`: "mean", "sum" or "none".
AttributeSpec reduction_attribute();

/// The type of a loss over `items`: f32 for 16-bit floats.
Type loss_type(const TypeContext& context, const Shape& items);
/// A loss that compares a prediction with a target of the same type, element by element: `items` is given
/// both, widened. Samples included.
Operator elementwise_loss(std::string_view name, std::string_view doc,
                          std::function<Value(Build&, Value, Value, const Attributes&)> items);

/// `items` reduced as the attribute says.
Value reduce_loss(Build& b, Value items, const Attributes& attributes);
/// The gradient of reduce_loss: what arrived for the loss, spread over the items.
Value spread_loss_gradient(Build& b, Value gradient, const Shape& items, const Attributes& attributes);

/// Every sample once with each reduction.
std::vector<Sample> with_reductions(const std::vector<Sample>& samples);

}  // namespace millrace::ops
