// Whether a list has something.
#pragma once

#include <algorithm>
#include <iterator>

namespace millrace {

/// std::ranges::contains() of C++23.
template <typename List, typename T>
bool contains(const List& list, const T& value) {
  return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

}  // namespace millrace
