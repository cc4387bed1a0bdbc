#include <algorithm>
#include <mutex>
#include <unicode/uregex.h>
#include <unicode/utext.h>

#include "data/codecs/text/pipeline.h"
#include "data/codecs/text/unicode.h"

namespace millrace::data {
namespace {

/// From Oniguruma's syntax (Ruby's) to ICU's, where they differ; InputError for what has no counterpart.
std::string icu_syntax(const std::string& pattern, const Json& json) {
  std::string result;
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] == '(' && pattern.compare(at, 3, "(?~") == 0) json.unsupported("the expression's (?~");
    if (pattern[at] != '\\' || at + 1 == pattern.size()) {
      result += pattern[at++];
      continue;
    }
    const char c = pattern[at + 1];
    // White space is another set in ICU, without U+000B and U+0085, and \h is something else.
    if (c == 's')
      result += "\\p{White_Space}";
    else if (c == 'S')
      result += "\\P{White_Space}";
    else if (c == 'h')
      result += "[0-9a-fA-F]";
    else if (std::string_view("HRXGKgkyYOzZ").find(c) != std::string_view::npos)
      json.unsupported(fmt::format("the expression's \\{}", c));
    else
      result.append(pattern, at, 2);
    at += 2;
  }
  return result;
}

class Expression {
 public:
  explicit Expression(const Json& json) : source_(json.text()), where_(json.where) {
    const std::string syntax = icu_syntax(source_, json);
    UErrorCode status = U_ZERO_ERROR;
    UText text = UTEXT_INITIALIZER;
    utext_openUTF8(&text, syntax.data(), static_cast<int64_t>(syntax.size()), &status);
    UParseError error{};
    URegularExpression* compiled =
        uregex_openUText(&text, UREGEX_MULTILINE | UREGEX_UNIX_LINES, &error, &status);
    utext_close(&text);
    if (U_FAILURE(status) || !compiled)
      fail<InputError>("{}: '{}' is no regular expression that can be read: {} at {}", where_, source_,
                       u_errorName(status), error.offset);
    idle_.push_back(compiled);
  }
  ~Expression() {
    for (URegularExpression* expression : idle_) uregex_close(expression);
  }

  void find(std::string_view given, std::vector<std::pair<size_t, size_t>>& matches) const {
    matches.clear();
    URegularExpression* const expression = take();
    UErrorCode status = U_ZERO_ERROR;
    UText text = UTEXT_INITIALIZER;
    utext_openUTF8(&text, given.data(), static_cast<int64_t>(given.size()), &status);
    uregex_setUText(expression, &text, &status);
    // Of 10,000 backtracking steps each: many for every byte of the text, but no exponential number.
    uregex_setTimeLimit(expression,
                        static_cast<int32_t>(std::min<size_t>(300 + given.size() / 500, INT32_MAX)), &status);
    while (U_SUCCESS(status) && uregex_findNext(expression, &status))
      matches.emplace_back(static_cast<size_t>(uregex_start64(expression, 0, &status)),
                           static_cast<size_t>(uregex_end64(expression, 0, &status)));
    utext_close(&text);
    give_back(expression);
    if (U_FAILURE(status))
      fail<InputError>("{}: '{}' cannot be searched for in a text of {} bytes: {}", where_, source_,
                       given.size(), u_errorName(status));
  }

 private:
  /// An expression holds the state of a search: each thread takes one of its own.
  URegularExpression* take() const {
    const std::lock_guard lock(mutex_);
    if (idle_.size() > 1) {
      URegularExpression* const expression = idle_.back();
      idle_.pop_back();
      return expression;
    }
    UErrorCode status = U_ZERO_ERROR;
    URegularExpression* const copy = uregex_clone(idle_[0], &status);
    if (U_FAILURE(status)) fail<InternalError>("ICU cannot copy an expression: {}", u_errorName(status));
    return copy;
  }
  void give_back(URegularExpression* expression) const {
    const std::lock_guard lock(mutex_);
    idle_.push_back(expression);
  }

  std::string source_, where_;
  mutable std::mutex mutex_;
  mutable std::vector<URegularExpression*> idle_;  // the first is never used, only copied
};

}  // namespace

Pattern make_pattern(const Json& json) {
  if (json.has("String"))
    return [wanted = json.text("String")](std::string_view text, auto& matches) {
      matches.clear();
      if (wanted.empty()) return;
      for (size_t at = 0; (at = text.find(wanted, at)) != std::string_view::npos; at += wanted.size())
        matches.emplace_back(at, at + wanted.size());
    };
  if (json.has("Regex")) {
    const auto expression = std::make_shared<const Expression>(json.at("Regex"));
    return [expression](std::string_view text, auto& matches) { expression->find(text, matches); };
  }
  json.unsupported("a pattern that is neither String nor Regex");
}

}  // namespace millrace::data
