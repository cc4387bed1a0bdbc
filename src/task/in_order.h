// What comes in any order, handed on in one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace millrace::task {

/// Hands on items by their numbers, from 0 on; of one number the first that comes.
template <typename Item>
class InOrder {
 public:
  InOrder(int64_t count, std::function<void(int64_t number, const Item& item)> hand_on)
      : came_(static_cast<size_t>(count), false), hand_on_(std::move(hand_on)) {}

  /// False where one of this number came before.
  bool add(int64_t number, Item item) {
    if (came_[static_cast<size_t>(number)]) return false;
    came_[static_cast<size_t>(number)] = true;
    waiting_.emplace(number, std::move(item));
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_; ++next_) {
      hand_on_(next_, first->second);
      first = waiting_.erase(first);
    }
    return true;
  }

 private:
  std::vector<bool> came_;
  std::function<void(int64_t, const Item&)> hand_on_;
  std::map<int64_t, Item> waiting_;
  int64_t next_ = 0;
};

}  // namespace millrace::task
