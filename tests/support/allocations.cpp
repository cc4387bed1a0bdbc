// The C library's allocation functions and operator new are replaced for the whole test program and all
// libraries in it; they pass on to the C library's own, and note who called while somebody counts. They
// allocate nothing themselves.
#include "support/allocations.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <malloc.h>
#include <new>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define MILLRACE_COUNTS 0
#else
#define MILLRACE_COUNTS 1
#endif

namespace {

constexpr size_t kMost = 1 << 16;
struct Note {
  const void* caller;
  size_t bytes;
};
Note notes[kMost];
std::atomic<size_t> used{0};
std::atomic<long> held{0};
std::atomic<bool> counting{false};

[[maybe_unused]] inline void note(const void* caller, size_t bytes) {
  if (!counting.load(std::memory_order_relaxed)) return;
  const size_t at = used.fetch_add(1, std::memory_order_relaxed);
  if (at < kMost) notes[at] = {caller, bytes};
}

}  // namespace

#if MILLRACE_COUNTS

#define CALLER __builtin_return_address(0)

namespace {

/// What the C library gave, or takes back.
void* given(void* memory) {
  if (counting.load(std::memory_order_relaxed)) held += static_cast<long>(malloc_usable_size(memory));
  return memory;
}
void* taken(void* memory) {
  if (counting.load(std::memory_order_relaxed)) held -= static_cast<long>(malloc_usable_size(memory));
  return memory;
}

}  // namespace

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

void* malloc(size_t bytes) {
  note(CALLER, bytes);
  return given(__libc_malloc(bytes));
}
void* calloc(size_t count, size_t bytes) {
  note(CALLER, count * bytes);
  return given(__libc_calloc(count, bytes));
}
void* realloc(void* old, size_t bytes) {
  note(CALLER, bytes);
  return given(__libc_realloc(taken(old), bytes));
}
void* memalign(size_t alignment, size_t bytes) {
  note(CALLER, bytes);
  return given(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  note(CALLER, bytes);
  return given(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** result, size_t alignment, size_t bytes) {
  note(CALLER, bytes);
  *result = given(__libc_memalign(alignment, bytes));
  return *result ? 0 : ENOMEM;
}
void free(void* memory) { __libc_free(taken(memory)); }
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  note(CALLER, bytes);
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}
}

void* operator new(size_t bytes) {
  note(CALLER, bytes);
  if (void* memory = given(__libc_malloc(std::max<size_t>(bytes, 1)))) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  note(CALLER, bytes);
  if (void* memory = given(__libc_memalign(static_cast<size_t>(alignment), std::max<size_t>(bytes, 1))))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

#endif

namespace millrace::test {

bool allocations_are_counted() { return MILLRACE_COUNTS; }

CountAllocations::CountAllocations() {
  used = 0;
  held = 0;
  counting = true;
}

CountAllocations::~CountAllocations() { counting = false; }

long CountAllocations::kept() const { return held; }

std::vector<CountAllocations::Place> CountAllocations::places() const {
  counting = false;
  std::vector<Place> found;
  for (size_t i = 0; i < std::min<size_t>(used, kMost); ++i) {
    Dl_info info{};
    std::string library = "?";
    if (dladdr(notes[i].caller, &info) && info.dli_fname) library = info.dli_fname;
    library = library.substr(library.rfind('/') + 1);
    auto place =
        std::find_if(found.begin(), found.end(), [&](const Place& p) { return p.library == library; });
    if (place == found.end()) place = found.insert(found.end(), {library, 0, 0});
    ++place->count;
    place->largest = std::max(place->largest, notes[i].bytes);
  }
  return found;
}

}  // namespace millrace::test
