// Columns of any data set as plain arrays.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// Dataset::read_run() of samples `first` to `first` + `count` - 1, or the same value by value where the
/// format has none. Missing values are not present, nor are contents that are no texts. InputError for
/// columns that hold no numbers or texts, and for a number or text that is not of its column's kind.
std::vector<ColumnValues> read_columns(const Dataset& dataset, int64_t first, int64_t count,
                                       std::span<const size_t> columns);

}  // namespace millrace::data
