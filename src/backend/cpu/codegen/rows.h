// How a nest runs on some rows of its results.
#pragma once

#include <utility>
#include <vector>

#include "backend/cpu/codegen/nest.h"
#include "target/provider.h"

namespace millrace::codegen {

/// The part of RowKernel that follows from a nest.
struct NestRows {
  int64_t most = 0;            // rows that results split into at most; 0: they do not
  std::vector<char> operands;  // whether a row takes no more of the operand than its row
  int64_t outer_count = 1;     // iterations of the outer loop
  int64_t group = 0;  // > 0: the only loop is the outer one, with so many elements of it an iteration

  /// See RowKernel::row_grain.
  int64_t grain(int64_t rows) const;
  /// The iterations of the outer loop that compute rows [begin, end).
  std::pair<int64_t, int64_t> outer(int64_t rows, int64_t begin, int64_t end) const;
};

NestRows rows_of(const Nest& nest, const KernelRequest& request);

}  // namespace millrace::codegen
