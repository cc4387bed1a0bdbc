#include "data/table/query_truth.h"

#include <fnmatch.h>

namespace millrace::data {

Cell constant_cell(const Query::Operand& operand) {
  if (operand.what == Query::Operand::What::text) return std::string_view(operand.text);
  if (operand.what == Query::Operand::What::integer) return operand.integer;
  return operand.number;
}

Truth truth_of(const std::string& comparison, const Cell& a, const Cell& b) {
  const auto missing = [](const Cell& cell) { return std::holds_alternative<std::monostate>(cell); };
  if (missing(a) || missing(b)) return Truth::unknown;
  const auto *text = std::get_if<std::string_view>(&a), *other = std::get_if<std::string_view>(&b);
  if (!text != !other) return Truth::unknown;
  if (text && comparison == "like") {
    const bool like = ::fnmatch(std::string(*other).c_str(), std::string(*text).c_str(), FNM_NOESCAPE) == 0;
    return like ? Truth::yes : Truth::no;
  }
  int order = 0;
  const auto *whole = std::get_if<int64_t>(&a), *whole_b = std::get_if<int64_t>(&b);
  if (text) {
    order = text->compare(*other);
  } else if (whole && whole_b) {
    order = *whole < *whole_b ? -1 : *whole > *whole_b ? 1 : 0;
  } else {
    const double x = whole ? static_cast<double>(*whole) : std::get<double>(a),
                 y = whole_b ? static_cast<double>(*whole_b) : std::get<double>(b);
    if (x != x || y != y) return Truth::unknown;
    order = x < y ? -1 : x > y ? 1 : 0;
  }
  const bool holds = comparison == "="    ? order == 0
                     : comparison == "!=" ? order != 0
                     : comparison == "<"  ? order < 0
                     : comparison == "<=" ? order <= 0
                     : comparison == ">"  ? order > 0
                                          : order >= 0;
  return holds ? Truth::yes : Truth::no;
}

}  // namespace millrace::data
