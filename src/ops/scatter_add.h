// Sums of rows: the gradient of a lookup.
#pragma once

#include <optional>

#include <millrace/graph.h>

namespace millrace::ops {

/// Rows added up in a table of zeros.
struct RowSum {
  Value indices, updates;
};
/// scatter_add(0, indices, updates) along dimension 0; nullopt for anything else.
std::optional<RowSum> row_sum(const Graph& graph, Value value);

}  // namespace millrace::ops
