#include "train/model_parts.h"

#include <algorithm>
#include <set>

namespace millrace::train {
namespace {

/// The first `words` words of a name that is not its last; the name itself where it has but one.
std::string first_words(const std::string& name, size_t words) {
  const size_t last = name.rfind('.');
  if (last == std::string::npos) return name;
  size_t end = 0;
  for (size_t i = 0; i < words && end != std::string::npos && end <= last; ++i)
    end = name.find('.', i == 0 ? 0 : end + 1);
  return name.substr(0, std::min(end, last));
}

}  // namespace

std::vector<std::string> model_parts(std::span<const std::string> names, size_t most) {
  size_t words = 1;
  for (const std::string& name : names)
    words = std::max(words, static_cast<size_t>(std::count(name.begin(), name.end(), '.')));
  std::vector<std::string> parts;
  for (;; --words) {
    parts.clear();
    for (const std::string& name : names) parts.push_back(first_words(name, words));
    if (words == 1 || std::set<std::string>(parts.begin(), parts.end()).size() <= most) return parts;
  }
}

}  // namespace millrace::train
