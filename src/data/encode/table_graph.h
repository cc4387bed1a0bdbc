// What a TableEncoder does with numbers, as graph operators.
#pragma once

#include <millrace/tensor.h>

#include "data/encode/table_encoder.h"

namespace millrace::data {

/// The columns of numbers as they stand in a table, in the order of `dense` without what is derived: how
/// many.
int64_t raw_numbers(const std::vector<TableEncoder::Dense>& dense);

/// From those, f64 [batch, raw_numbers()] with NaN where a value is missing, what a model takes, f32 [batch,
/// dense.size()]: standardised, what is missing filled in, the flags of what was, and where dates stand in
/// the year, the week and the day.
Tensor encode_numbers(const Tensor& numbers, const std::vector<TableEncoder::Dense>& dense);

}  // namespace millrace::data
