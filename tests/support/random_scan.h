// Random control flow of tame values.
#pragma once

#include "support/random_graph.h"

namespace millrace::test {

/// A graph of one scan with a random body over `rows` rows and `length` steps, and with the gradients of its
/// results with respect to all operands; the same for the same seed. `mixes_rows`: a row may depend on the
/// others.
RandomGraph random_scan(uint64_t seed, int64_t rows, int64_t length, bool mixes_rows);

/// The same of a cond of two random branches, of which the inputs choose one.
RandomGraph random_cond(uint64_t seed, int64_t rows, bool condition);

/// The same of a while_loop that runs `steps` steps, or `limit` if that is less.
RandomGraph random_while(uint64_t seed, int64_t rows, int64_t limit, int64_t steps);

}  // namespace millrace::test
