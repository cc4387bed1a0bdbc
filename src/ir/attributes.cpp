#include <algorithm>
#include <cmath>
#include <iterator>

#include <millrace/attributes.h>

#include "base/contains.h"
#include "base/format.h"
#include "base/suggest.h"

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

/// Of each AttributeType.
constexpr const char* type_names[] = {"true or false",           "a whole number", "a number", "a text",
                                      "a list of whole numbers", "a dtype",        "a shape",  "an array"};
static_assert(std::size(type_names) == std::variant_size_v<Attribute>);

bool lies_within(double number, const AttributeRange& range) {
  if (!std::isfinite(range.low) && !std::isfinite(range.high)) return true;  // NaN, too
  return number >= range.low && number <= range.high && !(range.above && number == range.low);
}

/// "from 0 to 1", "at least 1", "more than 0"; empty where there are no bounds.
std::string bounds_text(const AttributeRange& range) {
  const bool below = std::isfinite(range.low), above = std::isfinite(range.high);
  if (below && above && !range.above) return fmt::format("from {} to {}", range.low, range.high);
  std::string text;
  if (below) text = fmt::format("{} {}", range.above ? "more than" : "at least", range.low);
  if (above) text += fmt::format("{}at most {}", below ? " and " : "", range.high);
  return text;
}

std::string list_text(const AttributeRange& range) {
  const std::string bounds = bounds_text(range);
  return fmt::format("{}numbers{}{}", range.count < 0 ? "" : fmt::format("{} ", range.count),
                     bounds.empty() ? "" : ", each ", bounds);
}

std::string word_fault(const std::string& word, const AttributeRange& range) {
  if (contains(range.choices, word)) return "";
  return fmt::format("must be one of {}, not '{}'{}", fmt::join(range.choices, ", "), word,
                     did_you_mean(word, range.choices));
}

}  // namespace

std::string AttributeSpec::fault(const Attribute& value) const {
  const auto wanted = static_cast<size_t>(type);
  if (value.index() != wanted)
    return fmt::format("must be {}, not {}", type_names[wanted], type_names[value.index()]);
  const auto lies_outside = [&](auto number) { return !lies_within(static_cast<double>(number), range); };
  if (const auto* whole = std::get_if<int64_t>(&value); whole && lies_outside(*whole))
    return fmt::format("must be {}, not {}", bounds_text(range), *whole);
  if (const auto* number = std::get_if<double>(&value); number && lies_outside(*number))
    return fmt::format("must be {}, not {}", bounds_text(range), *number);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value);
      list && ((range.count >= 0 && list->size() != static_cast<size_t>(range.count)) ||
               std::any_of(list->begin(), list->end(), lies_outside)))
    return fmt::format("must be {}, not [{}]", list_text(range), fmt::join(*list, ", "));
  if (range.choices.empty()) return "";  // asked first, as a dtype's name has to be made
  if (const auto* text = std::get_if<std::string>(&value)) return word_fault(*text, range);
  if (const auto* dtype = std::get_if<DType>(&value)) return word_fault(dtype->name(), range);
  return "";
}

Attributes::Attributes(std::initializer_list<std::pair<std::string, Attribute>> items) {
  for (const auto& [name, value] : items) set(name, value);
}

const std::vector<std::pair<std::string, Attribute>>& Attributes::items() const {
  static const std::vector<std::pair<std::string, Attribute>> none;
  return items_ ? *items_ : none;
}

void Attributes::set(std::string name, Attribute value) {
  if (!items_ || items_.use_count() > 1)
    items_ = std::make_shared<std::vector<std::pair<std::string, Attribute>>>(items());
  const auto at = std::lower_bound(items_->begin(), items_->end(), name,
                                   [](const auto& item, const std::string& key) { return item.first < key; });
  if (at != items_->end() && at->first == name)
    at->second = std::move(value);
  else
    items_->insert(at, {std::move(name), std::move(value)});
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& item : items())
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
  if (items_ == other.items_) return true;
  return std::equal(
      items().begin(), items().end(), other.items().begin(), other.items().end(),
      [](const auto& a, const auto& b) { return a.first == b.first && equal(a.second, b.second); });
}

}  // namespace millrace
