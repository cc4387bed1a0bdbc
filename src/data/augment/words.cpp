#include "data/augment/words.h"

#include <charconv>
#include <cmath>

#include "base/format.h"
#include "base/words.h"

namespace millrace::data {
namespace {

using Range = std::vector<double>;

bool is_word(const Setting& setting) { return setting.name[0] >= 'A' && setting.name[0] <= 'Z'; }

/// Numbers within the setting's bounds; what is wrong, as a message.
double bounded_number(const Setting& setting, std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() ||
      !(value >= setting.low && value <= setting.high))
    fail<InputError>("{} must be a number from {} to {}, not \"{}\"", setting.name, setting.low, setting.high,
                     word);
  if (std::holds_alternative<int64_t>(setting.usual) && value != std::floor(value))
    fail<InputError>("{} must be a whole number", setting.name);
  return value;
}

SettingValue word_value(const Setting& setting, std::string_view word) {
  if (word.empty()) fail<InputError>("{} is missing", setting.name);
  if (std::holds_alternative<int64_t>(setting.usual))
    return static_cast<int64_t>(bounded_number(setting, word));
  if (!std::holds_alternative<Range>(setting.usual)) return bounded_number(setting, word);
  const size_t dots = word.find("..");
  if (dots == std::string_view::npos)
    fail<InputError>("{} must be two numbers with .. between them, not \"{}\"", setting.name, word);
  const Range range = {bounded_number(setting, word.substr(0, dots)),
                       bounded_number(setting, word.substr(dots + 2))};
  if (range[0] > range[1]) fail<InputError>("{} must not begin above its end", setting.name);
  return range;
}

/// Takes the words name=value out, then the others in their order.
Settings settings_of(std::vector<std::string> words, const std::vector<Setting>& declared, bool optional) {
  Settings settings(declared);
  words.erase(words.begin());
  std::erase_if(words, [&](const std::string& word) {
    const size_t equals = word.find('=');
    const Setting* setting = settings.find(word.substr(0, equals));
    if (equals == std::string::npos || !setting || is_word(*setting) || settings.given(setting->name) ||
        std::holds_alternative<bool>(setting->usual))
      return false;
    settings.set(setting->name, word_value(*setting, std::string_view(word).substr(equals + 1)));
    return true;
  });
  size_t next = 0;
  for (const Setting& setting : declared) {
    if (is_word(setting)) {
      if (optional && words.empty()) continue;
      settings.set(setting.name, word_value(setting, next < words.size() ? words[next] : ""));
      ++next;
    } else if (std::holds_alternative<bool>(setting.usual) && next < words.size() &&
               words[next] == setting.name) {
      settings.set(setting.name, true);
      ++next;
    }
  }
  if (next < words.size()) fail<InputError>("\"{}\" is too much", words[next]);
  return settings;
}

}  // namespace

std::string usage_of(const std::string& name, const std::vector<Setting>& settings, bool optional) {
  std::string needed, rest;
  for (const Setting& setting : settings) {
    if (is_word(setting))
      needed += (needed.empty() ? "" : " ") + setting.name;
    else if (const auto* range = std::get_if<Range>(&setting.usual))
      rest += fmt::format(" [{}={:.4g}..{:.4g}]", setting.name, range->at(0), range->at(1));
    else if (const auto* number = std::get_if<double>(&setting.usual))
      rest += fmt::format(" [{}={:.4g}]", setting.name, *number);
    else if (const auto* whole = std::get_if<int64_t>(&setting.usual))
      rest += fmt::format(" [{}={}]", setting.name, *whole);
    else
      rest += fmt::format(" [{}]", setting.name);
  }
  if (!needed.empty()) needed = optional ? " [" + needed + "]" : " " + needed;
  return name + needed + rest;
}

Settings parse_words(std::string_view text, const std::vector<Setting>& settings, bool optional) {
  const std::vector<std::string> words = split_words(text);
  try {
    return settings_of(words, settings, optional);
  } catch (const InputError& error) {
    wrong_words(text, error.what(), usage_of(words.at(0), settings, optional));
  }
}

void wrong_words(std::string_view text, const std::string& why, const std::string& usage) {
  fail<InputError>("augmentation \"{}\": {}; write it as {}", text, why, usage);
}

std::pair<double, double> range_of(const Settings& settings, std::string_view name) {
  const std::vector<double>& range = settings.numbers(name);
  return {range.at(0), range.at(1)};
}

}  // namespace millrace::data
