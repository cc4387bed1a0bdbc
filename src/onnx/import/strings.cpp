#include <algorithm>
#include <memory>
#include <set>
#include <unicode/locid.h>
#include <unicode/unistr.h>
#include <unicode/uregex.h>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;
using onnx::Item;
using onnx::Texts;

// Operators of texts. Texts are known while the model is imported, and so is what comes of them.
namespace {

/// What is damaged becomes U+FFFD.
std::string in_case(const std::string& text, bool upper) {
  icu::UnicodeString wide = icu::UnicodeString::fromUTF8(text);
  if (upper)
    wide.toUpper(icu::Locale::getRoot());
  else
    wide.toLower(icu::Locale::getRoot());
  std::string changed;
  return wide.toUTF8String(changed);
}

/// Where element i of a broadcast shape comes from in one of its parts.
int64_t source_of(int64_t i, const Ints& shape, const Ints& own) {
  int64_t at = 0, stride = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const size_t from_end = shape.size() - 1 - d;
    const int64_t place = i % shape[from_end];
    i /= shape[from_end];
    if (d >= own.size()) continue;
    const int64_t size = own[own.size() - 1 - d];
    if (size != 1) at += place * stride;
    stride *= size;
  }
  return at;
}

std::vector<std::string> words_of(const std::string& text, const std::string& delimiter, int64_t most) {
  constexpr std::string_view blank = " \t\n\v\f\r";
  std::vector<std::string> words;
  size_t at = 0;
  if (delimiter.empty()) {
    while ((at = text.find_first_not_of(blank, at)) != std::string::npos) {
      size_t end = text.find_first_of(blank, at);
      if (static_cast<int64_t>(words.size()) == most) {
        end = text.find_last_not_of(blank) + 1;
      } else if (end == std::string::npos) {
        end = text.size();
      }
      words.push_back(text.substr(at, end - at));
      at = end;
    }
    return words;
  }
  for (size_t end = 0;
       static_cast<int64_t>(words.size()) < most && (end = text.find(delimiter, at)) != std::string::npos;
       at = end + delimiter.size())
    words.push_back(text.substr(at, end - at));
  words.push_back(text.substr(at));
  return words;
}

}  // namespace

MILLRACE_ONNX_IMPORT(StringConcat) {
  const Texts &a = call.texts(0), &b = call.texts(1);
  const Shape shape = broadcast_shapes(Shape(a.shape), Shape(b.shape));
  if (shape.count() > (1 << 24)) call.refuse("it has more than 2^24 texts");
  Texts joined{shape.sizes(), {}};
  for (int64_t i = 0; i < shape.count(); ++i)
    joined.values.push_back(a.values[static_cast<size_t>(source_of(i, joined.shape, a.shape))] +
                            b.values[static_cast<size_t>(source_of(i, joined.shape, b.shape))]);
  return {Item::of(std::move(joined))};
}

MILLRACE_ONNX_IMPORT(StringSplit) {
  const Texts& x = call.texts(0);
  const std::string delimiter = call.text("delimiter", "");
  const int64_t limit = call.has("maxsplit") ? call.integer("maxsplit") : INT64_MAX;
  std::vector<std::vector<std::string>> words;
  size_t longest = 0;
  Array counts(i64, Shape(x.shape));
  for (size_t i = 0; i < x.values.size(); ++i) {
    words.push_back(words_of(x.values[i], delimiter, limit < 0 ? INT64_MAX : limit));
    longest = std::max(longest, words.back().size());
    counts.set_int(static_cast<int64_t>(i), static_cast<int64_t>(words.back().size()));
  }
  if (longest * words.size() > (1 << 24)) call.refuse("it has more than 2^24 parts");
  Texts parts;
  parts.shape = x.shape;
  parts.shape.push_back(static_cast<int64_t>(longest));
  for (std::vector<std::string>& each : words) {
    each.resize(longest);
    parts.values.insert(parts.values.end(), each.begin(), each.end());
  }
  return {Item::of(std::move(parts)), call.constant(counts)};
}

MILLRACE_ONNX_IMPORT(StringNormalizer) {
  Texts x = call.texts(0);
  if (x.shape.empty() || x.shape.size() > 2 || (x.shape.size() == 2 && x.shape[0] != 1))
    call.refuse("its texts are neither [n] nor [1, n]");
  const std::string action = call.text("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    call.refuse("the case_change_action '" + action + "' is not known");
  const bool exact = call.integer("is_case_sensitive", 0) != 0;
  std::set<std::string> stops;
  if (call.has("stopwords"))
    for (const std::string& word : call.attribute("stopwords").texts)
      stops.insert(exact ? word : in_case(word, false));
  Texts kept;
  for (const std::string& word : x.values) {
    if (stops.contains(exact ? word : in_case(word, false))) continue;
    kept.values.push_back(action == "NONE" ? word : in_case(word, action == "UPPER"));
  }
  if (kept.values.empty()) kept.values.emplace_back();  // as the standard says
  kept.shape = x.shape;
  kept.shape.back() = static_cast<int64_t>(kept.values.size());
  return {Item::of(std::move(kept))};
}

MILLRACE_ONNX_IMPORT(RegexFullMatch) {
  const Texts& x = call.texts(0);
  const icu::UnicodeString pattern = icu::UnicodeString::fromUTF8(call.text("pattern"));
  UErrorCode error = U_ZERO_ERROR;
  const std::unique_ptr<URegularExpression, void (*)(URegularExpression*)> expression(
      uregex_open(pattern.getBuffer(), pattern.length(), 0, nullptr, &error), uregex_close);
  if (U_FAILURE(error)) call.refuse("its pattern cannot be read: " + std::string(u_errorName(error)));
  uregex_setTimeLimit(expression.get(), 1000, &error);  // some hundred milliseconds
  Array matches(boolean, Shape(x.shape));
  for (size_t i = 0; i < x.values.size(); ++i) {
    const icu::UnicodeString text = icu::UnicodeString::fromUTF8(x.values[i]);
    uregex_setText(expression.get(), text.getBuffer(), text.length(), &error);
    matches.set(static_cast<int64_t>(i), uregex_matches(expression.get(), 0, &error) != 0 ? 1 : 0);
    if (U_FAILURE(error))
      call.refuse("its pattern takes too long on a text: " + std::string(u_errorName(error)));
  }
  return {call.constant(matches)};
}

/// Of numbers element by element, of texts now.
MILLRACE_ONNX_IMPORT(Equal) {
  if (!call.is_texts(0) || !call.is_texts(1)) return {call.b.binary("equal", call[0], call[1])};
  const Texts &a = call.texts(0), &b = call.texts(1);
  const Shape shape = broadcast_shapes(Shape(a.shape), Shape(b.shape));
  Array same(boolean, shape);
  const Ints sizes = shape.sizes();
  for (int64_t i = 0; i < same.count(); ++i)
    same.set(i, a.values[static_cast<size_t>(source_of(i, sizes, a.shape))] ==
                        b.values[static_cast<size_t>(source_of(i, sizes, b.shape))]
                    ? 1
                    : 0);
  return {call.constant(same)};
}
