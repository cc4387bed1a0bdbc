// One body for many numbers, on threads of its own.
#pragma once

#include <cstdint>
#include <functional>

namespace millrace {

/// Runs `body(i)` for i in [0, count) on `threads` threads (0: as many as CPUs), the caller's included;
/// rethrows the exception of the lowest i that failed. For one-off work (decoding, rendering), not for steps
/// of a training.
void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& body);

/// The same of parts of [0, count), each of `part` numbers, the last of what is left: body(first, end).
void parallel_parts(int64_t count, int64_t part, int threads,
                    const std::function<void(int64_t, int64_t)>& body);

}  // namespace millrace
