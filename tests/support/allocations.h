// Counts the memory that the whole process asks for, whoever asks.
#pragma once

#include <string>
#include <vector>

namespace millrace::test {

/// False in builds with a sanitizer, whose allocators cannot be counted here.
bool allocations_are_counted();

/// While one lives, every malloc and mmap (and their kin, operator new too) of any thread is noted. One at a
/// time.
class CountAllocations {
 public:
  CountAllocations();
  ~CountAllocations();
  CountAllocations(const CountAllocations&) = delete;
  CountAllocations& operator=(const CountAllocations&) = delete;

  struct Place {
    std::string library;  // file name of the program or library whose code asked
    long count = 0;
    size_t largest = 0;  // bytes
  };
  /// What was asked for so far, by library. Ends the counting.
  std::vector<Place> places() const;
  /// Bytes that were asked for while counting, less those that were given back.
  long kept() const;
};

}  // namespace millrace::test
