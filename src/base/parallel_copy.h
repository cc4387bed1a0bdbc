// Copies by all threads, so that memory lies where it will be used.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/memory_nodes.h"
#include "base/thread_pool.h"

namespace millrace {

/// Copies in as many parts as the pool has threads, each by the one that begins with this part of the data in
/// other loops, too (ThreadPool): memory that was never written before then belongs to its node.
inline void copy_in_parts(ThreadPool& pool, void* to, const void* from, size_t bytes) {
  constexpr size_t page = 4096;
  const size_t parts = static_cast<size_t>(pool.threads()), part = (bytes / parts + page) / page * page;
  pool.parallel(static_cast<int64_t>(parts), [&](int64_t i) {
    const size_t begin = std::min(static_cast<size_t>(i) * part, bytes), size = std::min(part, bytes - begin);
    if (size > 0) std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin, size);
  });
}

/// copy_in_parts() where the machine has several memory nodes and it is worth waking threads; else a plain
/// copy.
inline void copy_to_nodes(ThreadPool& pool, void* to, const void* from, size_t bytes) {
  constexpr size_t worth = 1 << 18;
  if (bytes >= worth && MemoryNodes::here().count() > 1)
    copy_in_parts(pool, to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

}  // namespace millrace
