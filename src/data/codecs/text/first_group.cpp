#include "data/codecs/text/first_group.h"

#include <mutex>
#include <unicode/uregex.h>
#include <unicode/utext.h>

#include "base/format.h"

namespace millrace::data {

struct FirstGroup::State {
  std::string source;
  std::mutex mutex;  // the expression holds the state of a search
  URegularExpression* expression = nullptr;
};

FirstGroup::FirstGroup(const std::string& expression) : state_(std::make_unique<State>()) {
  state_->source = expression;
  UErrorCode status = U_ZERO_ERROR;
  UText text = UTEXT_INITIALIZER;
  utext_openUTF8(&text, expression.data(), static_cast<int64_t>(expression.size()), &status);
  UParseError error{};
  state_->expression = uregex_openUText(&text, 0, &error, &status);
  utext_close(&text);
  // Steps of about 10,000 comparisons: far more than a name takes, and no exponential number.
  if (U_SUCCESS(status)) uregex_setTimeLimit(state_->expression, 1000, &status);
  if (U_FAILURE(status))
    fail<InputError>("the pattern \"{}\" is no regular expression: {} at character {}", expression,
                     u_errorName(status), error.offset);
}

FirstGroup::~FirstGroup() { uregex_close(state_->expression); }

std::optional<std::string> FirstGroup::find(std::string_view text) const {
  const std::lock_guard lock(state_->mutex);
  URegularExpression* const expression = state_->expression;
  UErrorCode status = U_ZERO_ERROR;
  UText opened = UTEXT_INITIALIZER;
  utext_openUTF8(&opened, text.data(), static_cast<int64_t>(text.size()), &status);
  uregex_setUText(expression, &opened, &status);
  std::optional<std::string> found;
  if (uregex_find64(expression, 0, &status)) {
    const int32_t group = uregex_groupCount(expression, &status) > 0 ? 1 : 0;
    const int64_t begin = uregex_start64(expression, group, &status);
    const int64_t end = uregex_end64(expression, group, &status);
    if (U_SUCCESS(status) && begin >= 0)
      found.emplace(text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  }
  utext_close(&opened);
  if (U_FAILURE(status))
    fail<InputError>("the pattern \"{}\" cannot be searched for in a text of {} bytes: {}", state_->source,
                     text.size(), u_errorName(status));
  return found;
}

}  // namespace millrace::data
