// What movement operators share about axes that are added or get another size: a stack's steps, and the rows
// that a loop's body is cut into.
#pragma once

#include <vector>

#include <millrace/operator.h>

namespace millrace::ops {

/// `list` with `first` before it; `prepended_if_any`: an empty list stays empty.
std::vector<int64_t> prepended(std::vector<int64_t> list, int64_t first);
std::vector<int64_t> prepended_if_any(std::vector<int64_t> list, int64_t first);

/// Another size of an axis in attribute `shape`.
void set_size_in_shape(Attributes& attributes, int axis, int64_t size);

}  // namespace millrace::ops
