// Values that are one number everywhere.
#pragma once

#include <optional>

#include <millrace/graph.h>

namespace millrace::ops {

/// The scalar that `value` is everywhere: a scalar constant, maybe broadcast; null when it is none.
const Array* filled_with(const Graph& graph, Value value);
bool is_filled_with(const Graph& graph, Value value, double number);
/// The number of a scalar constant, maybe broadcast or reshaped; nullopt when `value` is none.
std::optional<double> number_of(const Graph& graph, Value value);

}  // namespace millrace::ops
