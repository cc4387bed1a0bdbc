#include "data/io/byte_arena.h"

#include <new>
#include <sys/mman.h>

namespace millrace::data {

ByteArena::ByteArena(uint64_t size) : size_(size / step * step) {
  if (size_ == 0) return;
  void* memory =
      ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<uint8_t*>(memory);
  add(0, size_);
}

ByteArena::~ByteArena() {
  if (memory_) ::munmap(memory_, size_);
}

uint8_t* ByteArena::take(uint64_t size) {
  const uint64_t wanted = rounded(size);
  const auto fits = by_size_.lower_bound({wanted, 0});
  if (fits == by_size_.end()) return nullptr;
  const auto [all, at] = *fits;
  remove(free_.find(at));
  if (all > wanted) add(at + wanted, all - wanted);
  used_ += wanted;
  return memory_ + at;
}

void ByteArena::give_back(const uint8_t* part, uint64_t size) {
  auto at = static_cast<uint64_t>(part - memory_);
  uint64_t all = rounded(size);
  used_ -= all;
  auto next = free_.lower_bound(at);
  if (next != free_.end() && next->first == at + all) {
    all += next->second;
    const auto behind = next++;
    remove(behind);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == at) {
      at = before->first;
      all += before->second;
      remove(before);
    }
  }
  add(at, all);
}

void ByteArena::add(uint64_t at, uint64_t size) {
  free_.emplace(at, size);
  by_size_.emplace(size, at);
}

void ByteArena::remove(std::map<uint64_t, uint64_t>::iterator stretch) {
  by_size_.erase({stretch->second, stretch->first});
  free_.erase(stretch);
}

}  // namespace millrace::data
