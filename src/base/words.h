// Words and endings of texts.
#pragma once

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Without such characters at both ends.
inline std::string_view trimmed(std::string_view text, std::string_view characters = " \t\r\n\v\f") {
  const size_t begin = text.find_first_not_of(characters);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(characters) + 1 - begin);
}

/// What stands between blanks and tabs.
inline std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(" \t", at), text.size());
    if (end > at) words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// What stands between commas, or another character: of "a,,b" three, of "" one, which is empty.
inline std::vector<std::string> split(std::string_view text, char at = ',') {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(at, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Those of them that are not empty.
inline std::vector<std::string> split_list(std::string_view text, char at = ',') {
  std::vector<std::string> parts = split(text, at);
  std::erase(parts, "");
  return parts;
}

/// The lines of a text without their ends, \n or \r\n. `whole`: without a last one that has no end, for it
/// may still be written.
inline std::vector<std::string> lines_in(std::string_view text, bool whole = false) {
  if (whole) text = text.substr(0, text.rfind('\n') + 1);
  std::vector<std::string> lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  for (std::string& line : lines)
    if (line.ends_with('\r')) line.pop_back();
  return lines;
}

/// Of letters in ASCII.
inline std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Does a name end with one of these (in lower case), in any case?
inline bool has_ending(std::string_view name, std::initializer_list<std::string_view> endings) {
  const std::string lower = lower_case(std::string(name));
  return std::any_of(endings.begin(), endings.end(), [&](auto ending) { return lower.ends_with(ending); });
}

/// Runs of letters (whatever is beyond ASCII is one) and digits, letters of ASCII in lower case.
inline std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (size_t i = 0; i <= text.size(); ++i) {
    const auto c = static_cast<unsigned char>(i < text.size() ? text[i] : ' ');
    if (c >= 0x80 || std::isalnum(c)) {
      word += static_cast<char>(c < 0x80 ? std::tolower(c) : c);
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

/// "one, two and three".
inline std::string listed(std::span<const std::string> words, std::string_view last = "and") {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0                  ? std::string()
             : i + 1 == words.size() ? " " + std::string(last) + " "
                                     : std::string(", ")) +
            words[i];
  return text;
}

/// "a, b, c, d, e, f and 3 more".
inline std::string few_names(std::span<const std::string> names) {
  constexpr size_t most = 6;
  std::string text;
  for (size_t i = 0; i < std::min(most, names.size()); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

}  // namespace millrace
