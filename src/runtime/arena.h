// Memory for the intermediate values of a program.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace millrace {

struct FreeArena {
  void operator()(void* data) const;
};
using Arena = std::unique_ptr<void, FreeArena>;

/// Large ones ask for huge pages. Error when there is no memory.
Arena allocate_arena(int64_t bytes);

/// Memory that programs take turns with: as many arenas as run at the same time. Thread-safe.
class Arenas {
 public:
  /// `in_turns`: or each program has its own.
  explicit Arenas(bool in_turns = true) : in_turns_(in_turns) {}
  bool in_turns() const { return in_turns_; }

  /// One of at least so many bytes, for as long as it lives.
  class Lease {
   public:
    Lease(Arenas& from, int64_t bytes);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    void* memory() const { return arena_.memory.get(); }

   private:
    friend class Arenas;
    struct Sized {
      Arena memory;
      int64_t bytes = 0;
    };
    Arenas& from_;
    Sized arena_;
  };

  /// Lets go of those that nobody runs in and that are larger than this.
  void drop_larger(int64_t bytes);
  /// Of all of them.
  int64_t bytes() const { return bytes_; }

 private:
  const bool in_turns_;
  std::atomic<int64_t> bytes_{0};
  std::mutex mutex_;                // of what follows
  std::vector<Lease::Sized> idle_;  // the smallest first
};

}  // namespace millrace
