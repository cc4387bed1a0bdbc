// Rows of arrays, exchanged and moved; and weights that let nothing hide.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <millrace/array.h>

#include "check/context.h"

namespace millrace::check {

/// Is dimension 0 the batch?
bool has_rows(const Array& array, int64_t rows);
/// Row r of the result is row from[r].
Array picked_rows(const Array& array, std::span<const int64_t> from);
/// The same of an array that has as many rows; as it is where it has none.
Array with_rows(const Array& array, std::span<const int64_t> from);
/// A row in which some array differs from `row`, the one that differs in most bytes; -1: there is none.
int64_t different_row(std::span<const Array> arrays, int64_t row, int64_t rows);

/// Draws all weights anew and wide (norms stay about 1), so that heads that begin as zeros hide nothing of
/// what comes before them, until Context::reset().
void widen_weights(Context& context);

}  // namespace millrace::check
