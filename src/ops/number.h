// Values that are one number everywhere.
#pragma once

#include <optional>

#include <millrace/graph.h>

namespace millrace::ops {

/// The number that `value` is everywhere: a constant of one element, maybe broadcast or reshaped.
std::optional<double> number_of(const Graph& graph, Value value);

}  // namespace millrace::ops
