// Arithmetic on columns: "total / rooms + 3 * log(income)".
#pragma once

#include <string_view>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// Of each sample what a formula gives: numbers, columns of numbers, + - * /, brackets, abs, exp, log, sqrt,
/// min(a, b) and max(a, b). Names with other characters than letters, digits, _ and . stand in `backquotes`.
/// What a sample does not have makes its value NaN. InputError that shows the place when the text is none,
/// or for a column that is not there or holds no numbers.
std::vector<double> formula_values(std::string_view text, const Dataset& from);

}  // namespace millrace::data
