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

Arenas::Lease::Lease(Arenas& from, int64_t bytes) : from_(from) {
  Arena small;  // outlives the lock
  {
    const std::lock_guard lock(from.mutex_);
    std::vector<Sized>& idle = from.idle_;
    const auto fits =
        std::find_if(idle.begin(), idle.end(), [&](const Sized& each) { return each.bytes >= bytes; });
    if (fits != idle.end()) {
      arena_ = std::move(*fits);
      idle.erase(fits);
    } else if (!idle.empty()) {  // a larger one comes in its place
      from.bytes_ -= idle.back().bytes;
      small = std::move(idle.back().memory);
      idle.pop_back();
    }
  }
  small = nullptr;
  if (arena_.memory) return;
  arena_ = {allocate_arena(bytes), bytes};
  from.bytes_ += bytes;
}

Arenas::Lease::~Lease() {
  const std::lock_guard lock(from_.mutex_);
  std::vector<Sized>& idle = from_.idle_;
  const auto behind =
      std::find_if(idle.begin(), idle.end(), [&](const Sized& each) { return each.bytes > arena_.bytes; });
  idle.insert(behind, std::move(arena_));
}

void Arenas::drop_larger(int64_t bytes) {
  std::vector<Lease::Sized> dropped;  // outlives the lock
  const std::lock_guard lock(mutex_);
  while (!idle_.empty() && idle_.back().bytes > bytes) {
    bytes_ -= idle_.back().bytes;
    dropped.push_back(std::move(idle_.back()));
    idle_.pop_back();
  }
}

}  // namespace millrace
