// Memory for the intermediate values of a program.
#pragma once

#include <cstdint>
#include <memory>

namespace millrace {

struct FreeArena {
  void operator()(void* data) const;
};
using Arena = std::unique_ptr<void, FreeArena>;

/// Large ones ask for huge pages. Error when there is no memory.
Arena allocate_arena(int64_t bytes);

}  // namespace millrace
