// What an operator must bring.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <millrace/operator.h>

namespace millrace {

/// What is missing in the definitions of these operators, one line each; empty when they are complete.
/// Without samples: of a program's own, which no test of the library runs.
std::vector<std::string> missing_parts(std::span<const Operator* const> operators, bool samples = true);

}  // namespace millrace
