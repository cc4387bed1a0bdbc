// Conditions on samples: "label in (3, 5) and width > 200".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::data {

/// A condition over small columns (index.h). Comparisons are = (or ==), != (or <>), <, <=, >, >= of two
/// columns, or of a column and a number or a text in single or double quotes; `in (…)` and `not in (…)` take
/// lists, `like` and `not like` a text in quotes in which * and ? stand for any characters and for one; `not`
/// binds closer than `and`, `and` closer than `or`. Words may be in capital letters; names with other
/// characters than letters, digits, _ and . stand in `backquotes`. Texts are compared by their bytes. A
/// comparison with a value that a sample does not have is neither true nor false, and chosen is what is true.
class Query {
 public:
  struct Operand {
    enum class What { column, number, integer, text } what = What::number;
    std::string text;  // or the column's name
    int64_t integer = 0;
    double number = 0;
    size_t at = 0;  // in the text of the query
  };
  struct Node {
    enum class What { both, either, negation, compare, among } what = What::compare;
    int left = -1, right = -1;      // of both, either and negation
    std::string comparison;         // of compare: =, !=, <, <=, >, >=
    std::vector<Operand> operands;  // of compare two; of among the column and the list
  };

  /// InputError that shows the place when the text is no condition.
  static Query parse(std::string_view text);

  const std::string& text() const { return text_; }
  /// All nodes; operands come before what joins them, the last one is the whole.
  const std::vector<Node>& nodes() const { return nodes_; }
  /// InputError: the message, and the query with a mark at `at`.
  [[noreturn]] void fail_at(size_t at, const std::string& message) const;

 private:
  friend class QueryParser;
  std::string text_;
  std::vector<Node> nodes_;
};

/// A column's name as conditions write it: in backquotes unless it is plain.
std::string quoted_column(const std::string& name);
/// The condition that is true where a column has a value: that it is itself.
std::string has_a_value(const std::string& column);

}  // namespace millrace::data
