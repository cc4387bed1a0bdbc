// Ranges of numbers, which tell a model where a number stands among the others.
#pragma once

#include <vector>

#include "data/encode/table_encoder.h"

namespace millrace::data {

/// The numbers of each raw column of the float matrix that are there, of all rows or of a hundred thousand
/// that lie evenly among them, in ascending order.
std::vector<std::vector<double>> numbers_of_rows(const TableEncoder& encoder, const Dataset& dataset);

/// Puts behind each number (and its flag and waves) the ranges between its quantiles, at most `bins`; behind
/// none of two values or fewer.
void add_ranges(TableState& state, const std::vector<std::vector<double>>& numbers, int64_t bins);

}  // namespace millrace::data
