#include "task/class_names.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/number_from.h"
#include "base/utf8.h"

namespace millrace::task {
namespace {

constexpr int64_t most_listed = 1'000'000;

}  // namespace

bool is_whole_number(std::string_view text) { return number_from<int64_t>(text).has_value(); }

std::vector<std::string> sorted_names(std::vector<std::string> names) {
  const bool numbers =
      std::all_of(names.begin(), names.end(), [](const auto& n) { return is_whole_number(n); });
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    if (!numbers) return a < b;
    const auto one = number_from<int64_t>(a), other = number_from<int64_t>(b);
    return one != other ? one < other : a < b;
  });
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> listed_names(const std::vector<std::string>& list, const std::string& key) {
  std::vector<std::string> names;
  for (const std::string& text : list) {
    const size_t dots = text.find("..");
    const std::string_view from = std::string_view(text).substr(0, dots),
                           to = dots == std::string::npos ? "" : std::string_view(text).substr(dots + 2);
    const auto first = number_from<int64_t>(from), last = number_from<int64_t>(to);
    if (dots == std::string::npos || !first || !last) {
      names.push_back(text);
      continue;
    }
    if (*last < *first || *first < 0 || *last - *first >= most_listed)
      fail<InputError>(
          "{}: \"{}\" must go from a smaller number, 0 at the least, to a larger one, at most {} of them",
          key, text, most_listed);
    for (int64_t n = *first; n <= *last; ++n) names.push_back(std::to_string(n));
  }
  require_different(names, key);
  return names;
}

void require_different(const std::vector<std::string>& names, const std::string& key) {
  std::set<std::string> seen;
  for (const std::string& name : names)
    if (!seen.insert(name).second) fail<InputError>("{} names '{}' twice: leave one out", key, name);
}

std::string names_text(const std::vector<std::string>& names) {
  constexpr size_t most = 20;
  std::vector<std::string> first(names.begin(),
                                 names.begin() + static_cast<int64_t>(std::min(most, names.size())));
  return fmt::format("{}{}", fmt::join(stored_names(first), ", "), names.size() > most ? " …" : "");
}

std::vector<std::string> stored_names(const std::vector<std::string>& names) {
  std::vector<std::string> stored;
  for (const std::string& name : names) stored.push_back(stored_text(name));
  return stored;
}

std::vector<std::string> names_of_stored(std::vector<std::string> names) {
  for (std::string& name : names) name = text_of_stored(name);
  return names;
}

}  // namespace millrace::task
