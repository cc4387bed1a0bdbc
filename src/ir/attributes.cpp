#include <algorithm>

#include <millrace/attributes.h>

#include "base/format.h"

namespace millrace {
namespace {

bool equal(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Array>)
          return value.identical(std::get<T>(b));
        else
          return value == std::get<T>(b);
      },
      a);
}

}  // namespace

Attributes::Attributes(std::initializer_list<std::pair<std::string, Attribute>> items) {
  for (const auto& [name, value] : items) set(name, value);
}

void Attributes::set(std::string name, Attribute value) {
  const auto at = std::lower_bound(items_.begin(), items_.end(), name,
                                   [](const auto& item, const std::string& key) { return item.first < key; });
  if (at != items_.end() && at->first == name)
    at->second = std::move(value);
  else
    items_.insert(at, {std::move(name), std::move(value)});
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& item : items_)
    if (item.first == name) return &item.second;
  return nullptr;
}

const Attribute& Attributes::require(std::string_view name) const {
  const Attribute* found = find(name);
  if (!found) fail<TypeError>("attribute '{}' is missing", name);
  return *found;
}

void Attributes::wrong_kind(std::string_view name) {
  fail<TypeError>("attribute '{}' is of another kind than its operator reads", name);
}

bool Attributes::operator==(const Attributes& other) const {
  return std::equal(
      items_.begin(), items_.end(), other.items_.begin(), other.items_.end(),
      [](const auto& a, const auto& b) { return a.first == b.first && equal(a.second, b.second); });
}

}  // namespace millrace
