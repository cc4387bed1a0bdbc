// What the normalising operators share.
#pragma once

#include <millrace/operator.h>

#include "ops/build.h"

namespace millrace::ops {

/// Checks that operand `index` (weight, bias, statistic) has `shape`, and x's dtype or that of its
/// statistics.
void check_parameter(const TypeContext& context, int index, std::string_view what, const Shape& shape);

/// The type rule of norms over the trailing axes: x, then weight and bias of the shape of those axes.
std::vector<Type> trailing_norm_types(const TypeContext& context);
/// Samples of those norms with up to `operands` operands.
std::vector<Sample> trailing_norm_samples(int operands);

struct Normalised {
  Value x, scale;  // (x − mean) / deviation and 1 / deviation
};
/// x, widened, normalised over `axis` and all axes after it.
Normalised normalise(Build& b, Value x, const Attributes& attributes);

/// A vector over channels (axis 1) made ready for broadcasting to `rank` dimensions: [C, 1, 1 …].
Value per_channel(Build& b, Value vector, int rank);
/// All axes but 1.
std::vector<int64_t> all_but_channels(int rank);
/// Type checks of x [batch, channels, …]; returns the shape [channels].
Shape channels_of(const TypeContext& context);

}  // namespace millrace::ops
