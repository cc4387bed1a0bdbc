// Entries of train.freeze and train.rates.
#pragma once

#include <string>
#include <utility>

namespace millrace::task {

/// The name and the epochs of "white.bias 3"; InputError when it is not NAME EPOCHS.
std::pair<std::string, double> parse_freeze(const std::string& entry);
/// The pattern and the factor of "encoder.* 0.1"; InputError when it is not PATTERN FACTOR.
std::pair<std::string, double> parse_rate(const std::string& entry);

}  // namespace millrace::task
