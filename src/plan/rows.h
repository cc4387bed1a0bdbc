// Which bodies can be cut by rows.
#pragma once

#include <optional>
#include <vector>

#include <millrace/graph.h>

namespace millrace {

/// The body for `to` rows instead of its own (the size of dimension 0 of the inputs with row_inputs[k] and of
/// all outputs); nullopt when a result row may depend on other rows, or when it cannot be told.
std::optional<Graph> with_rows(const Graph& body, const std::vector<char>& row_inputs, int64_t to);

}  // namespace millrace
