#include "task/recipe_items.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/format.h"
#include "base/words.h"

namespace millrace::task {
namespace {

bool enclosed(std::string_view text, char open, char close) {
  return text.size() >= 2 && text.front() == open && text.back() == close;
}

/// The beginning of what may be long.
std::string shortened(const std::string& text) {
  constexpr size_t most = 80;
  return text.size() > most ? text.substr(0, most) + " …" : text;
}

void set_override(Items& items, const std::string& key, std::string_view text, const std::string& where) {
  require_short_key(key, where);
  const std::string inside = key + ".";
  const bool table = enclosed(text, '{', '}');
  if (is_table_name(key) || table) {
    std::erase_if(items.values, [&](const auto& item) { return item.first.starts_with(inside); });
    std::erase_if(items.tables, [&](const auto& item) { return item.first.starts_with(inside); });
  }
  const int64_t order = (int64_t{1} << 61) + static_cast<int64_t>(items.tables.size());
  if (!table) {
    items.add(key, override_value(text, where), order);
    return;
  }
  items.values.erase(key);
  items.add_table(key, where, order);
  for (const auto part : split_items(text.substr(1, text.size() - 2))) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) fail<InputError>("{}: '{}' is not key=value", where, part);
    set_override(items, inside + std::string(trimmed(part.substr(0, equals))),
                 trimmed(part.substr(equals + 1)), where);
  }
}

/// A whole number that is too large for TOML: said to be out of range, not to be a text.
std::optional<double> beyond_64_bits(std::string_view text) {
  const std::string_view digits = text.starts_with('-') || text.starts_with('+') ? text.substr(1) : text;
  constexpr size_t shortest = 19, longest = 300;
  if (digits.size() < shortest || digits.size() > longest || digits[0] == '0' ||
      digits.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  int64_t fits = 0;
  if (std::from_chars(text.data() + (text[0] == '+' ? 1 : 0), text.data() + text.size(), fits).ec ==
      std::errc())
    return std::nullopt;
  return std::strtod(std::string(text).c_str(), nullptr);
}

bool is_number(const Raw& raw) {
  return std::holds_alternative<int64_t>(raw.value) || std::holds_alternative<double>(raw.value);
}

double finite(const Raw& raw, const std::string& key) {
  if (const auto* whole = std::get_if<int64_t>(&raw.value)) return static_cast<double>(*whole);
  const double number = std::get<double>(raw.value);
  if (!std::isfinite(number))
    fail<InputError>("{}: {} must be a finite number, not {}", raw.where, key, number);
  return number;
}

}  // namespace

void require_short_key(const std::string& key, const std::string& where) {
  constexpr int64_t most_parts = 8;
  const int64_t parts = 1 + std::count(key.begin(), key.end(), '.');
  if (parts > most_parts)
    fail<InputError>("{}: the key {} has {} parts or more, and none of a recipe has more than {}", where,
                     shortened(key), parts, most_parts);
}

std::string raw_type(const Raw& raw) {
  static constexpr const char* names[] = {"true or false", "a whole number", "a number", "a text", "a list"};
  return names[raw.value.index()];
}

void Items::add_table(const std::string& name, const std::string& where, int64_t order) {
  for (size_t dot = name.find('.');; dot = name.find('.', dot + 1)) {
    Table& table = tables.try_emplace(name.substr(0, dot), Table{order, where}).first->second;
    if (order < table.order) table = {order, where};
    if (dot == std::string::npos) return;
  }
}

void Items::add(const std::string& key, Raw raw, int64_t order) {
  if (const size_t dot = key.rfind('.'); dot != std::string::npos)
    add_table(key.substr(0, dot), raw.where, order);
  raw.order = order;
  values.insert_or_assign(key, std::move(raw));
}

std::vector<std::string_view> split_items(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  char quote = 0;
  size_t begin = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    if (at == text.size() || (c == ',' && !quote && depth == 0)) {
      if (const auto part = trimmed(text.substr(begin, at - begin)); !part.empty()) parts.push_back(part);
      begin = at + 1;
    }
  }
  return parts;
}

Raw override_value(std::string_view text, const std::string& where) {
  Raw raw{std::string(text), std::string(text), where, 0};
  if (enclosed(text, '[', ']')) {
    std::vector<Raw> list;
    for (const auto part : split_items(text.substr(1, text.size() - 2))) {
      if (part.starts_with('[')) fail<InputError>("{}: no key of a recipe has lists in a list", where);
      list.push_back(override_value(part, where));
    }
    raw.value = std::move(list);
  } else if (const auto whole = beyond_64_bits(text)) {
    raw.value = *whole;
  } else if (read_toml_value(text, raw)) {
    if (const auto* string = std::get_if<std::string>(&raw.value)) raw.text = *string;
  }
  return raw;
}

void apply_override(Items& items, const std::string& change) {
  const std::string where = "'" + shortened(change) + "'";
  const size_t equals = change.find('=');
  if (equals == std::string::npos || equals == 0)
    fail<InputError>("{} is not key=value, as in train.epochs=2", where);
  set_override(items, std::string(trimmed(std::string_view(change).substr(0, equals))),
               trimmed(std::string_view(change).substr(equals + 1)), where);
}

SettingValue setting_value(const Raw& raw, const std::string& key) {
  if (const auto* flag = std::get_if<bool>(&raw.value)) return *flag;
  if (const auto* whole = std::get_if<int64_t>(&raw.value)) return *whole;
  if (is_number(raw)) return finite(raw, key);
  if (const auto* text = std::get_if<std::string>(&raw.value)) return *text;
  const auto& list = std::get<std::vector<Raw>>(raw.value);
  const auto all = [&](auto test) { return std::all_of(list.begin(), list.end(), test); };
  std::vector<double> numbers;
  std::vector<std::string> texts;
  if (!list.empty() && all(is_number)) {
    for (const Raw& item : list) numbers.push_back(finite(item, key));
    return numbers;
  }
  for (const Raw& item : list) {
    const auto* text = std::get_if<std::string>(&item.value);
    if (!text && (item.text.empty() || std::holds_alternative<std::vector<Raw>>(item.value)))
      fail<InputError>("{}: {} must be a list of texts, or of numbers: it holds {}", raw.where, key,
                       raw_type(item));
    texts.push_back(text ? *text : item.text);
  }
  return texts;
}

SettingValue as_setting(SettingValue value, const std::string& spelt, const SettingValue& usual) {
  const bool list = std::holds_alternative<std::vector<double>>(value) ||
                    std::holds_alternative<std::vector<std::string>>(value);
  if (const auto* number = std::get_if<double>(&value); number && std::holds_alternative<int64_t>(usual) &&
                                                        *number == std::floor(*number) &&
                                                        std::abs(*number) < 9e18)
    return static_cast<int64_t>(*number);
  if (spelt.empty()) return value;
  if (std::holds_alternative<std::string>(usual) && !list) return spelt;
  if (std::holds_alternative<std::vector<std::string>>(usual)) {
    if (!list) return std::vector<std::string>{spelt};
    if (std::holds_alternative<std::vector<double>>(value)) {
      std::vector<std::string> texts;
      for (const auto part : split_items(std::string_view(spelt).substr(1, spelt.size() - 2)))
        texts.emplace_back(part);
      return texts;
    }
  }
  return value;
}

}  // namespace millrace::task
