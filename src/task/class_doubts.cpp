#include "task/class_doubts.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/format.h"
#include "base/number_from.h"
#include "base/utf8.h"
#include "task/class_names.h"

namespace millrace::task {
namespace {

constexpr int64_t few_values = 10;           // no more of them are suspected of anything
constexpr int64_t most_usual_classes = 100;  // of whole numbers that could be either
constexpr int64_t most_counted = 20;         // that are no amounts wherever they begin
constexpr size_t most_named = 10;

bool own_classes(int64_t different, int64_t samples) {
  return different > few_values && 2 * different > samples;
}

/// Of names that are whole numbers.
bool are_amounts(const std::vector<std::string>& names) {
  int64_t least = INT64_MAX, most = INT64_MIN;
  for (const std::string& name : names) {
    const std::optional<int64_t> number = number_from(name);
    if (!number) return true;
    least = std::min(least, *number);
    most = std::max(most, *number);
  }
  return look_like_amounts(std::ssize(names), least, most);
}

}  // namespace

std::vector<std::string> class_doubts(const std::string& column, const std::vector<std::string>& names,
                                      const std::vector<int64_t>& counts, const std::string& key) {
  std::vector<std::string> lines, absent;
  const int64_t samples = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  if (samples == 0) return lines;
  size_t seen = 0, last = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) {
      absent.push_back(stored_text(names[i]));
      continue;
    }
    ++seen;
    last = i;
  }
  const auto different = static_cast<int64_t>(seen);
  const bool whole =
      std::all_of(names.begin(), names.end(), [](const auto& name) { return is_whole_number(name); });
  if (seen == 1)
    lines.push_back(
        fmt::format("all {} samples to train on are of the class '{}': nothing can be learnt from them",
                    samples, stored_text(names[last])));
  if (whole && (own_classes(different, samples) || are_amounts(names)))
    lines.push_back(
        fmt::format("{} has {} different whole numbers in {} samples: are these amounts? {}.kind = "
                    "\"number\" predicts them",
                    column, different, samples, key));
  else if (own_classes(different, samples))
    lines.push_back(
        fmt::format("{} has {} different values in {} samples: hardly anything can be learnt of classes "
                    "that have one or two; is it the right column?",
                    column, different, samples));
  if (absent.size() > most_named) {
    const auto more = absent.size() - most_named;
    absent.resize(most_named);
    lines.push_back(
        fmt::format("no sample to train on is of the classes {} and {} more", fmt::join(absent, ", "), more));
  } else {
    for (const std::string& name : absent)
      lines.push_back(fmt::format("no sample to train on is of the class '{}'", name));
  }
  return lines;
}

bool too_many_classes(int64_t different, int64_t samples) {
  return different > most_usual_classes || own_classes(different, samples);
}

bool look_like_amounts(int64_t different, int64_t least, int64_t most) {
  if (different <= most_counted) return false;
  return least < 0 || least > 1 || most / 2 >= different;
}

void require_two_classes(const std::vector<std::string>& names, const std::string& path,
                         const std::string& column, const std::string& listed) {
  if (names.size() > 1) return;
  fail<InputError>(
      "{}: all samples are of one class in the column '{}', '{}', so that there is nothing to learn; choose "
      "another column, add samples of other classes, or list those that are to come, as {}",
      path, column, names.empty() ? "" : stored_text(names[0]), listed);
}

}  // namespace millrace::task
