// Entries of train.freeze.
#pragma once

#include <string>
#include <utility>

namespace millrace::task {

/// The name and the epochs of "white.bias 3"; InputError when it is not NAME EPOCHS.
std::pair<std::string, double> parse_freeze(const std::string& entry);

}  // namespace millrace::task
