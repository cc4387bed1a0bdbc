// Gradients of tables that only some rows have.
#pragma once

#include <optional>
#include <vector>

#include <millrace/graph.h>

namespace millrace::optim {

/// Row `rows[i]` of a table has the gradient `values[i]`; `rows[i]` is −1 where `values[i]` counts nowhere.
/// No row stands twice.
struct RowGradient {
  Value rows;    // i64 [n]
  Value values;  // [n, width]
};

/// How many rows a gradient is the sum of, when it is a sum of row gradients: scatter_add into zeros along
/// axis 0, as embedding and gather give them; else nullopt.
std::optional<int64_t> row_count(const Graph& graph, Value gradient);

/// Terms of row gradients: indices i64 [n] and updates [n, width].
struct Rows {
  std::vector<Value> indices, updates;
};

/// Appends the terms of a gradient that has a row_count().
void collect_rows(Graph& graph, Value gradient, Rows& rows);
/// The gradient of a table that is the sum of all terms, as one scatter_add.
Value sum_of_rows(Graph& graph, const Rows& rows, const Type& table);

/// The gradient as rows when it has a row_count(), else nullopt. Gradients of one row are summed in the order
/// of their indices.
std::optional<RowGradient> row_gradient(Graph& graph, Value gradient);

/// Whether a row gradient has so few rows that leaving out the others is worth it, where both give the same.
bool few_rows(const Graph& graph, Value gradient);

/// The rows of a table, or of a parameter's state, that a gradient belongs to; zeros where it counts nowhere.
Value rows_of(Graph& graph, const RowGradient& gradient, Value table);

/// The table with those rows replaced.
Value with_rows(Graph& graph, const RowGradient& gradient, Value table, Value rows);

}  // namespace millrace::optim
