#include "baseline/rules.h"

#include "base/format.h"
#include "base/words.h"
#include "data/table/select.h"

namespace millrace::baseline {
namespace {

/// Cut at a mark that stands in no quotes.
std::vector<std::string> cut(const std::string& text, std::string_view mark) {
  std::vector<std::string> parts = {""};
  char quote = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"' || c == '`') {
      quote = c;
    } else if (std::string_view(text).substr(at).starts_with(mark)) {
      parts.emplace_back();
      at += mark.size() - 1;
      continue;
    }
    parts.back() += c;
  }
  for (std::string& part : parts) part = std::string(trimmed(part, " \t\n\r"));
  return parts;
}

}  // namespace

std::string unquoted(const std::string& text) {
  const bool quoted =
      text.size() >= 2 && text.front() == text.back() && (text.front() == '\'' || text.front() == '"');
  return quoted ? text.substr(1, text.size() - 2) : text;
}

std::vector<Rule> parse_rules(const std::string& text) {
  std::vector<Rule> rules;
  for (const std::string& part : cut(text, ";")) {
    if (part.empty()) continue;
    if (!rules.empty() && !rules.back().condition)
      fail<InputError>("the rule '{}' stands behind one without a condition ('{}'), which is always true",
                       part, rules.back().value);
    const std::vector<std::string> sides = cut(part, "->");
    if (sides.size() > 2) fail<InputError>("the rule '{}' has more than one ->: put a ; between rules", part);
    if (sides.back().empty()) fail<InputError>("the rule '{}' lacks its value behind ->", part);
    Rule& rule = rules.emplace_back();
    rule.value = sides.back();
    if (sides.size() == 2) rule.condition = data::Query::parse(sides[0]);
  }
  if (rules.empty()) fail<InputError>("it has no rule");
  return rules;
}

std::vector<int64_t> rule_of_each(const std::vector<Rule>& rules, const data::Dataset& from) {
  std::vector<int64_t> first(static_cast<size_t>(from.count()), -1);
  for (size_t r = 0; r < rules.size(); ++r) {
    const auto take = [&](int64_t sample) {
      int64_t& rule = first[static_cast<size_t>(sample)];
      if (rule < 0) rule = static_cast<int64_t>(r);
    };
    if (rules[r].condition)
      for (const int64_t sample : data::matching(from, *rules[r].condition)) take(sample);
    else
      for (int64_t i = 0; i < from.count(); ++i) take(i);
  }
  return first;
}

}  // namespace millrace::baseline
