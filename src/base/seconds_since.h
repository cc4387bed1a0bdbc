// How long something takes.
#pragma once

#include <chrono>

namespace millrace {

/// From that moment until now.
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace millrace
