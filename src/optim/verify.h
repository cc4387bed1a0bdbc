// Comparing compiled graphs with the reference back end.
#pragma once

#include <span>
#include <string>

#include <millrace/program.h>

namespace millrace::optim {

/// The largest |a − b| / (1 + largest |b|); infinite where one is finite and the other is not.
double relative_difference(const Array& a, const Array& b);

/// Runs `graph` on both back ends with every float result of every node as an output, and describes the first, in the
/// graph's order, that differs by more than `tolerance`: operator, layer, type, by how much. Empty when none does.
std::string first_difference(const Graph& graph, std::span<const Array> inputs, const CompileOptions& tested,
                             double tolerance);

}  // namespace millrace::optim
