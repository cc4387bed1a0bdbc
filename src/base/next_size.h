// Sizes in steps of at most a third.
#pragma once

#include <cstdint>

namespace millrace {

/// The next of 1, 2, 3, 4, 6, 8, 12, 16, 24 …: at most a third is filled up.
inline int64_t next_size(int64_t size) {
  int64_t power = 1;
  while (power < size) power *= 2;
  return power >= 4 && power / 4 * 3 >= size ? power / 4 * 3 : power;
}

}  // namespace millrace
