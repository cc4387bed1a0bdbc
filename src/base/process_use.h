// What this process uses of the machine.
#pragma once

#include <cstdint>

namespace millrace {

/// Seconds on CPUs, of all its threads, since it began.
double process_cpu_seconds();
/// Of its memory, what is in RAM; 0 where the system does not say.
int64_t resident_bytes();

}  // namespace millrace
