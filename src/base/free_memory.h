// Memory that the process has freed, and still has.
#pragma once

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace millrace {

/// Gives the system back what was freed: the C library keeps it for the next who asks.
inline void give_back_free_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace millrace
