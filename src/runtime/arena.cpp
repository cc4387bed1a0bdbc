#include "runtime/arena.h"

#include <algorithm>
#include <cstdlib>
#include <sys/mman.h>

#include "base/format.h"
#include "base/free_memory.h"

namespace millrace {

void FreeArena::operator()(void* data) const { std::free(data); }

Arena allocate_arena(int64_t bytes) {
  // What compiling freed (tens of megabytes) goes back first: it would stand in the process's size beside the
  // plan's.
  if (bytes >= (8 << 20)) give_back_free_memory();
  const size_t page = bytes < (8 << 20) ? 64 : 2 << 20;
  const size_t rounded = (static_cast<size_t>(std::max<int64_t>(bytes, 64)) + page - 1) / page * page;
  Arena arena(std::aligned_alloc(page, rounded));
  if (!arena)
    fail<Error>("{:.1f} MB of memory for intermediate values could not be had; use a smaller batch",
                static_cast<double>(bytes) / 1e6);
  // Not the last page unless all of it is used: a page that is touched is memory of the process, to its end.
  if (page > 64) madvise(arena.get(), static_cast<size_t>(bytes) / page * page, MADV_HUGEPAGE);
  return arena;
}

}  // namespace millrace
