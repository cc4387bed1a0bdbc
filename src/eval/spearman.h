#pragma once

#include <span>

namespace millrace::eval {

/// Spearman's rank correlation, equals sharing their ranks; NaN of fewer than two pairs, or where all of one
/// side are equal.
double spearman(std::span<const double> x, std::span<const double> y);

}  // namespace millrace::eval
