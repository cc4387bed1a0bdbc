// One stretch of memory for parts of any size.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace millrace::data {

/// Pages are taken of the system when they are first written, and never more than `size` bytes: what a heap
/// would lose in holes between parts is room here that cannot be had. Not thread-safe.
class ByteArena {
 public:
  explicit ByteArena(uint64_t size);
  ~ByteArena();
  ByteArena(const ByteArena&) = delete;
  ByteArena& operator=(const ByteArena&) = delete;

  /// The smallest free stretch that holds `size` bytes (> 0); null where there is none.
  uint8_t* take(uint64_t size);
  void give_back(const uint8_t* part, uint64_t size);
  uint64_t used() const { return used_; }

 private:
  static constexpr uint64_t step = 64;
  static uint64_t rounded(uint64_t size) { return (size + step - 1) / step * step; }
  void add(uint64_t at, uint64_t size);
  void remove(std::map<uint64_t, uint64_t>::iterator stretch);

  uint64_t size_, used_ = 0;
  uint8_t* memory_ = nullptr;
  std::map<uint64_t, uint64_t> free_;                // where, how much
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // how much, where
};

}  // namespace millrace::data
