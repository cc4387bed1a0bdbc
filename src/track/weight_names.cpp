#include "track/weight_names.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "base/format.h"
#include "base/number_from.h"
#include "base/words.h"

namespace millrace::track {
namespace {

/// What stands for each * of the pattern, where the name fits.
bool fits_pattern(std::string_view pattern, std::string_view name, std::vector<std::string>& stars) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  name.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  if (pattern.empty()) {
    stars.emplace_back(name);
    return true;
  }
  for (size_t size = 0; size <= name.size(); ++size) {
    stars.emplace_back(name.substr(0, size));
    if (fits_pattern(pattern, name.substr(size), stars)) return true;
    stars.pop_back();
    if (size < name.size() && name[size] == '.') break;
  }
  return false;
}

Array transposed_of(const Array& matrix, const std::string& name) {
  if (matrix.shape().rank() != 2)
    fail<InputError>("{} is to be transposed, and is no matrix but {}", name, matrix.type().str());
  const int64_t rows = matrix.shape()[0].size(), columns = matrix.shape()[1].size();
  const auto bytes = static_cast<size_t>(matrix.dtype().bytes());
  Array turned(matrix.dtype(), {columns, rows});
  const auto* from = static_cast<const std::byte*>(matrix.data());
  auto* to = static_cast<std::byte*>(turned.data());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      std::memcpy(to + static_cast<size_t>(j * rows + i) * bytes,
                  from + static_cast<size_t>(i * columns + j) * bytes, bytes);
  return turned;
}

/// A tensor's parts by their number.
struct Parts {
  int64_t count = 1;
  std::map<int64_t, std::pair<std::string, Array>> found;  // and what each is called
};

Array put_together(const std::string& name, const Parts& parts) {
  for (int64_t part = 1; part <= parts.count; ++part)
    if (!parts.found.contains(part))
      fail<InputError>("{} is made of {} tensors, of which number {} is not in the file (number {} is {})",
                       name, parts.count, part, parts.found.begin()->first,
                       parts.found.begin()->second.first);
  const Array& first = parts.found.begin()->second.second;
  if (parts.count == 1) return first;
  Shape whole = first.shape();
  int64_t rows = 0;
  for (const auto& [part, item] : parts.found) {
    const auto& [theirs, array] = item;
    Shape like = array.shape();
    const bool matrix = like.rank() > 0 && whole.rank() == like.rank();
    if (matrix) {
      rows += like[0].size();
      like[0] = whole[0];
    }
    if (!matrix || like != whole || array.dtype() != first.dtype())
      fail<InputError>("{} is put together from {} tensors, and {} is {} beside {}", name, parts.count,
                       theirs, array.type().str(), first.type().str());
  }
  whole[0] = rows;
  Array joined(first.dtype(), whole);
  auto* to = static_cast<std::byte*>(joined.data());
  for (const auto& [part, item] : parts.found) {
    std::memcpy(to, item.second.data(), item.second.bytes());
    to += item.second.bytes();
  }
  return joined;
}

}  // namespace

std::optional<std::string> NameRule::target(std::string_view name) const {
  std::vector<std::string> stars;
  if (!fits_pattern(from, name, stars)) return std::nullopt;
  std::string made;
  size_t next = 0;
  for (const char c : to) {
    if (c == '*')
      made += stars[next++];
    else
      made += c;
  }
  return made;
}

NameRule parse_name_rule(const std::string& text) {
  NameRule rule{.text = text, .from = {}, .to = {}};
  std::istringstream words(text);
  words >> rule.from >> rule.to;
  bool right = !rule.to.empty();
  for (std::string word; words >> word;) {
    if (word == "transposed") {
      rule.transposed = true;
      continue;
    }
    const std::vector<std::string> both = split(word, '/');
    rule.part = number_from(both.front()).value_or(0);
    rule.parts = number_from(both.back()).value_or(0);
    right = right && both.size() == 2 && rule.part >= 1 && rule.part <= rule.parts && rule.parts <= 1000;
  }
  if (!right)
    fail<InputError>(
        "'{}' is not a pattern of names in the file and the name in the model, such as 'encoder.*.query.* "
        "blocks.*.qkv.* 1/3' (the first of three parts) or 'h.*.fc.weight blocks.*.fc1.weight transposed'",
        text);
  if (std::count(rule.to.begin(), rule.to.end(), '*') > std::count(rule.from.begin(), rule.from.end(), '*'))
    fail<InputError>("'{}': the name in the model has more * than the pattern in front", text);
  return rule;
}

Renamed renamed(std::string_view name, std::span<const NameRule> rules) {
  for (const NameRule& rule : rules)
    if (auto target = rule.target(name)) return {&rule, std::move(*target)};
  return {nullptr, std::string(name)};
}

std::map<std::string, Array> rename_tensors(const std::map<std::string, Array>& tensors,
                                            std::span<const NameRule> rules) {
  std::map<std::string, Parts> targets;
  for (const auto& [theirs, array] : tensors) {
    const Renamed now = renamed(theirs, rules);
    Parts& parts = targets[now.name];
    const int64_t part = now.rule ? now.rule->part : 1;
    parts.count = std::max(parts.count, now.rule ? now.rule->parts : 1);
    const bool turn = now.rule && now.rule->transposed;
    const auto [at, added] =
        parts.found.try_emplace(part, theirs, turn ? transposed_of(array, theirs) : array);
    if (!added) fail<InputError>("{} and {} would both become {}", at->second.first, theirs, now.name);
  }
  std::map<std::string, Array> made;
  for (const auto& [name, parts] : targets) made.emplace(name, put_together(name, parts));
  return made;
}

}  // namespace millrace::track
