// Positions along axes, as operators that pick and put elements have them.
#pragma once

#include "onnx/import/call.h"

namespace millrace::onnx {

/// Indices as i64, negative ones counted from the end of `size`.
Value counted_from_front(ImportCall& call, Value indices, int64_t size);
Value counted_from_front(ImportCall& call, Value indices, Value size);  // i64[]
/// Of the operands 0 (data) and 1 (indices along `axis`, of data's rank): for each index the place of its
/// element in the flattened data, i64 of the indices' shape.
Value places_of_elements(ImportCall& call, int64_t axis);
/// x turned round along an axis.
Value turned_round(ImportCall& call, Value x, int64_t axis);

}  // namespace millrace::onnx
