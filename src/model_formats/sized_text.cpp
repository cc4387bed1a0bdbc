#include "model_formats/sized_text.h"

#include <algorithm>
#include <cstdint>

#include "base/format.h"
#include "base/number_from.h"

namespace millrace {
namespace {

// Stands before and behind a formula: "c d e e …", with an exponent of each size.
constexpr char kFormula = '\x02';
constexpr int kMostExponent = 2;
constexpr size_t kFewest = 4;  // two examples for c and d, two that have to agree

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A text in pieces: what is no number, a number, what is none …
std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  size_t at = 0;
  for (bool digits = false; at < text.size(); digits = !digits) {
    size_t end = at;
    while (end < text.size() && is_digit(text[end]) == digits) ++end;
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

/// A number that is written as numbers are: what begins with a zero is a part of something else.
std::optional<int64_t> plain_number(std::string_view text) {
  return text.size() > 1 && text[0] == '0' ? std::nullopt : number_from(text);
}

/// The product of sizes to these powers; nullopt when it is too large.
std::optional<int64_t> product(const Bindings& sizes, const std::vector<int>& exponents) {
  int64_t value = 1;
  size_t next = 0;
  for (const auto& [name, size] : sizes)
    for (int e = exponents[next++]; e > 0; --e)
      if (__builtin_mul_overflow(value, size, &value)) return std::nullopt;
  return value;
}

/// c · product + d.
std::optional<int64_t> value_of(int64_t c, int64_t d, const std::vector<int>& exponents,
                                const Bindings& sizes) {
  std::optional<int64_t> value = product(sizes, exponents);
  if (!value || __builtin_mul_overflow(*value, c, &*value) || __builtin_add_overflow(*value, d, &*value))
    return std::nullopt;
  return value;
}

/// All exponents but none at all, small sums first.
std::vector<std::vector<int>> exponents_of(size_t sizes) {
  std::vector<std::vector<int>> all = {{}};
  for (size_t i = 0; i < sizes; ++i) {
    std::vector<std::vector<int>> more;
    for (const std::vector<int>& each : all)
      for (int e = 0; e <= kMostExponent; ++e) {
        more.push_back(each);
        more.back().push_back(e);
      }
    all = std::move(more);
  }
  const auto degree = [](const std::vector<int>& list) {
    int sum = 0;
    for (const int e : list) sum += e;
    return sum;
  };
  std::erase_if(all, [&](const auto& list) { return degree(list) == 0; });
  std::stable_sort(all.begin(), all.end(),
                   [&](const auto& a, const auto& b) { return degree(a) < degree(b); });
  return all;
}

using Examples = std::vector<std::pair<Bindings, std::string>>;

/// The formula of these values, one of each example.
std::optional<std::string> formula(const Examples& examples, const std::vector<int64_t>& values,
                                   const std::vector<std::vector<int>>& candidates) {
  for (const std::vector<int>& exponents : candidates) {
    const std::optional<int64_t> first = product(examples[0].first, exponents),
                                 second = product(examples[1].first, exponents);
    if (!first || !second || *first == *second || (values[1] - values[0]) % (*second - *first) != 0) continue;
    const int64_t c = (values[1] - values[0]) / (*second - *first), d = values[0] - c * *first;
    bool fits = true;
    for (size_t i = 0; fits && i < examples.size(); ++i)
      fits = value_of(c, d, exponents, examples[i].first) == values[i];
    if (fits) return fmt::format("{0}{1} {2} {3}{0}", kFormula, c, d, fmt::join(exponents, " "));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> learn_text(const Examples& examples) {
  MILLRACE_CHECK(examples.size() >= kFewest, "{} examples are too few", examples.size());
  std::vector<std::vector<std::string_view>> pieces;
  for (const auto& [sizes, text] : examples) {
    if (text.find(kFormula) != std::string::npos) return std::nullopt;
    pieces.push_back(pieces_of(text));
    if (pieces.back().size() != pieces[0].size() || sizes.size() != examples[0].first.size())
      return std::nullopt;
  }
  constexpr size_t most_sizes = 4;  // more have too many products
  if (examples[0].first.size() > most_sizes) return std::nullopt;
  const std::vector<std::vector<int>> candidates = exponents_of(examples[0].first.size());
  std::string learnt;
  for (size_t p = 0; p < pieces[0].size(); ++p) {
    const std::string_view first = pieces[0][p];
    if (std::all_of(pieces.begin(), pieces.end(), [&](const auto& each) { return each[p] == first; })) {
      learnt += first;
      continue;
    }
    std::vector<int64_t> values;
    for (const auto& each : pieces) {
      const std::optional<int64_t> value = plain_number(each[p]);
      if (!value) return std::nullopt;
      values.push_back(*value);
    }
    const std::optional<std::string> found = formula(examples, values, candidates);
    if (!found) return std::nullopt;
    learnt += *found;
  }
  return learnt;
}

std::string text_at(std::string_view learnt, const Bindings& sizes) {
  std::string text;
  while (true) {
    const size_t begin = learnt.find(kFormula);
    text += learnt.substr(0, begin);
    if (begin == std::string_view::npos) return text;
    learnt.remove_prefix(begin + 1);
    const size_t end = learnt.find(kFormula);
    if (end == std::string_view::npos) fail<InputError>("a formula does not end");
    std::string_view rest = learnt.substr(0, end);
    learnt.remove_prefix(end + 1);
    std::vector<int64_t> numbers;
    while (!rest.empty()) {
      const size_t space = std::min(rest.find(' '), rest.size());
      const std::optional<int64_t> value = number_from(rest.substr(0, space));
      if (!value) fail<InputError>("a formula is none");
      numbers.push_back(*value);
      rest.remove_prefix(std::min(space + 1, rest.size()));
    }
    if (numbers.size() != 2 + sizes.size()) fail<InputError>("a formula is of other sizes");
    std::vector<int> exponents;
    for (size_t i = 2; i < numbers.size(); ++i) {
      if (numbers[i] < 0 || numbers[i] > kMostExponent) fail<InputError>("a formula is none");
      exponents.push_back(static_cast<int>(numbers[i]));
    }
    const std::optional<int64_t> value = value_of(numbers[0], numbers[1], exponents, sizes);
    if (!value || *value < 0) fail<InputError>("a number would be negative or too large");
    text += std::to_string(*value);
  }
}

}  // namespace millrace
