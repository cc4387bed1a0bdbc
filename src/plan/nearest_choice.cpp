#include "plan/nearest_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace millrace {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

/// The number that a text begins with, which is taken off it.
double take_number(std::string_view& text) {
  double value = 0;
  for (; !text.empty() && digit(text[0]); text.remove_prefix(1)) value = 10 * value + (text[0] - '0');
  return value;
}

/// How far apart the numbers of two texts are, in factors of e; infinite when they differ in more.
double distance(std::string_view a, std::string_view b) {
  double sum = 0;
  while (!a.empty() && !b.empty()) {
    if (digit(a[0]) && digit(b[0])) {
      const double x = take_number(a), y = take_number(b);
      sum += std::abs(std::log(std::max(x, 0.5) / std::max(y, 0.5)));
      continue;
    }
    if (a[0] != b[0]) break;
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.empty() && b.empty() ? sum : std::numeric_limits<double>::infinity();
}

}  // namespace

std::optional<std::string> nearest_choice(const std::map<std::string, std::string>& choices,
                                          const std::string& problem) {
  double least = std::numeric_limits<double>::infinity();
  const std::string* choice = nullptr;
  for (const auto& [known, chosen] : choices)
    if (const double d = distance(known, problem); d < least) {
      least = d;
      choice = &chosen;
    }
  return choice ? std::optional(*choice) : std::nullopt;
}

}  // namespace millrace
