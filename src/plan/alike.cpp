#include "plan/alike.h"

#include <cstdint>

#include "base/next_size.h"

namespace millrace {

std::string alike_problem(std::string_view problem) {
  constexpr int64_t few = 16;
  const auto digit = [&](size_t at) {
    return at < problem.size() && problem[at] >= '0' && problem[at] <= '9';
  };
  std::string alike;
  bool in_type = false;  // "f32[3, 100]": not layouts, nor strides
  for (size_t at = 0; at < problem.size();) {
    if (problem[at] == '[') in_type = true;
    if (problem[at] == ']') in_type = false;
    if (!in_type || !digit(at)) {
      alike += problem[at++];
      continue;
    }
    int64_t size = 0;
    for (; digit(at); ++at) size = 10 * size + (problem[at] - '0');
    alike += std::to_string(size < few ? size : next_size(size));
  }
  return alike;
}

}  // namespace millrace
