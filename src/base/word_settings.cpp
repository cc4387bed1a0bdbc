#include "base/word_settings.h"

#include <cmath>

#include "base/contains.h"
#include "base/format.h"
#include "base/number_from.h"
#include "base/suggest.h"
#include "base/words.h"

namespace millrace {
namespace {

using Range = std::vector<double>;
using Rest = std::vector<std::string>;

bool is_word(const Setting& setting) { return setting.name[0] >= 'A' && setting.name[0] <= 'Z'; }

/// A word that need not be there.
bool is_text_with_default(const Setting& setting) {
  const auto* text = std::get_if<std::string>(&setting.usual);
  return text && !text->empty();
}

/// Numbers within the setting's bounds; what is wrong, as a message.
double bounded_number(const Setting& setting, std::string_view word) {
  const auto value = number_from<double>(word);
  if (!value || !(*value >= setting.low && *value <= setting.high))
    fail<InputError>("{} must be a number from {} to {}, not \"{}\"", setting.name, setting.low, setting.high,
                     word);
  if (std::holds_alternative<int64_t>(setting.usual) && *value != std::floor(*value))
    fail<InputError>("{} must be a whole number", setting.name);
  return *value;
}

SettingValue word_value(const Setting& setting, std::string_view word) {
  if (word.empty()) fail<InputError>("{} is missing", setting.name);
  if (std::holds_alternative<std::string>(setting.usual)) return std::string(word);
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

/// A word that is left over.
[[noreturn]] void refuse_word(const std::string& word, const Settings& settings) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> options;
  for (const Setting& setting : settings.declared())
    if (!is_word(setting) && !std::holds_alternative<bool>(setting.usual)) options.push_back(setting.name);
  if (name == word || options.empty()) fail<InputError>("\"{}\" is too much", word);
  if (contains(options, name)) fail<InputError>("{} is given twice", name);
  fail<InputError>("there is no {}{}", name, did_you_mean(name, options, "", '"'));
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
      if (is_text_with_default(setting) && next == words.size()) continue;
      const auto left = words.begin() + static_cast<std::ptrdiff_t>(next);
      if (std::holds_alternative<Rest>(setting.usual) && next < words.size()) {
        settings.set(setting.name, Rest(left, words.end()));
        next = words.size();
        continue;
      }
      if (setting.path && next < words.size()) {  // there may be spaces in it
        settings.set(setting.name, fmt::format("{}", fmt::join(left, words.end(), " ")));
        next = words.size();
        continue;
      }
      const std::string word = next < words.size() ? words[next] : "";
      const bool number = !std::holds_alternative<std::string>(setting.usual);
      if (number && word.find('=') != std::string::npos) refuse_word(word, settings);
      settings.set(setting.name, word_value(setting, word));
      ++next;
    } else if (std::holds_alternative<bool>(setting.usual) && next < words.size() &&
               words[next] == setting.name) {
      settings.set(setting.name, true);
      ++next;
    }
  }
  if (next < words.size()) refuse_word(words[next], settings);
  return settings;
}

}  // namespace

std::string usage_of(const std::string& name, const std::vector<Setting>& settings, bool optional) {
  std::string needed, rest;
  for (const Setting& setting : settings) {
    if (is_word(setting))
      needed += (needed.empty() ? "" : " ") +
                (is_text_with_default(setting) ? "[" + setting.name + "]" : setting.name) +
                (std::holds_alternative<Rest>(setting.usual) ? " …" : "");
    else if (const auto* range = std::get_if<Range>(&setting.usual))
      rest += fmt::format(" [{}={:.4g}..{:.4g}]", setting.name, range->at(0), range->at(1));
    else if (const auto* number = std::get_if<double>(&setting.usual))
      rest += fmt::format(" [{}={:.4g}]", setting.name, *number);
    else if (const auto* whole = std::get_if<int64_t>(&setting.usual))
      rest += fmt::format(" [{}={}]", setting.name, *whole);
    else if (const auto* text = std::get_if<std::string>(&setting.usual))
      rest += fmt::format(" [{}={}]", setting.name, *text);
    else
      rest += fmt::format(" [{}]", setting.name);
  }
  if (!needed.empty()) needed = optional ? " [" + needed + "]" : " " + needed;
  return name + needed + rest;
}

Settings parse_words(std::string_view what, std::string_view text, const std::vector<Setting>& settings,
                     bool optional) {
  const std::vector<std::string> words = split_words(text);
  try {
    return settings_of(words, settings, optional);
  } catch (const InputError& error) {
    wrong_words(what, text, error.what(), usage_of(words.at(0), settings, optional));
  }
}

void wrong_words(std::string_view what, std::string_view text, const std::string& why,
                 const std::string& usage) {
  fail<InputError>("{} \"{}\": {}; write it as {}", what, text, why, usage);
}

std::string settings_help(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& setting : settings) {
    const bool bounded = std::holds_alternative<int64_t>(setting.usual) ||
                         std::holds_alternative<double>(setting.usual) ||
                         std::holds_alternative<Range>(setting.usual);
    text += fmt::format("      {}: {} ({}{})\n", setting.name, setting.doc, type_text(setting.usual),
                        bounded ? fmt::format(" from {} to {}", setting.low, setting.high) : "");
  }
  return text;
}

std::pair<double, double> range_of(const Settings& settings, std::string_view name) {
  const std::vector<double>& range = settings.numbers(name);
  return {range.at(0), range.at(1)};
}

}  // namespace millrace
