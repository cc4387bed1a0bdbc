#include "data/table/query_truth.h"

#include <fnmatch.h>

namespace millrace::data {

Cell constant_cell(const Query::Operand& operand) {
  Cell cell;
  cell.what = operand.what == Query::Operand::What::text      ? Cell::What::text
              : operand.what == Query::Operand::What::integer ? Cell::What::integer
                                                              : Cell::What::real;
  cell.integer = operand.integer;
  cell.real = operand.number;
  cell.text = operand.text;
  return cell;
}

Truth truth_of(const std::string& comparison, const Cell& a, const Cell& b) {
  if (a.what == Cell::What::missing || b.what == Cell::What::missing) return Truth::unknown;
  if ((a.what == Cell::What::text) != (b.what == Cell::What::text)) return Truth::unknown;
  if (comparison == "like") {
    const std::string text(a.text), pattern(b.text);
    return ::fnmatch(pattern.c_str(), text.c_str(), FNM_NOESCAPE) == 0 ? Truth::yes : Truth::no;
  }
  int order = 0;
  if (a.what == Cell::What::text) {
    order = a.text.compare(b.text);
  } else if (a.what == Cell::What::integer && b.what == Cell::What::integer) {
    order = a.integer < b.integer ? -1 : a.integer > b.integer ? 1 : 0;
  } else {
    const double x = a.number(), y = b.number();
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
