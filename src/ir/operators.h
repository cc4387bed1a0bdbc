// The operators that there are: the library's own, which lie in src/ops/, and those that a program adds.
#pragma once

#include <span>

#include <millrace/operator.h>

namespace millrace {

/// The library's own operators, by name.
std::span<const Operator* const> library_operators();

/// Checks the library's operators on the first call; throws InternalError with everything that is missing.
void check_operators();

}  // namespace millrace
