// What movement operators share about dimension 0: a stack's steps, and the rows that a loop's body is cut
// into.
#pragma once

#include <vector>

#include <millrace/operator.h>

namespace millrace::ops {

/// `list` with `first` before it; `prepended_if_any`: an empty list stays empty.
std::vector<int64_t> prepended(std::vector<int64_t> list, int64_t first);
std::vector<int64_t> prepended_if_any(std::vector<int64_t> list, int64_t first);

/// Row rule of operators that leave dimension 0 alone where its size is the same.
std::vector<char> rows_where_kept(const RowContext& context);

/// Another number of rows in attribute `shape`.
void set_rows_of_shape(Attributes& attributes, int64_t rows);

}  // namespace millrace::ops
