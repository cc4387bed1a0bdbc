// Arithmetic on columns: "total / rooms + 3 * log(income)".
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// Numbers, columns of numbers, + - * /, brackets, abs, exp, log, sqrt, min(a, b) and max(a, b). Names with
/// other characters than letters, digits, _ and . stand in `backquotes`. What a sample does not have makes
/// its value NaN.
class Formula {
 public:
  struct Node {
    enum class What {
      number,
      column,
      negative,
      add,
      subtract,
      multiply,
      divide,
      abs,
      exp,
      log,
      sqrt,
      min,
      max
    };
    What what = What::number;
    double number = 0;
    std::string column;
    size_t at = 0;              // in the text
    int left = -1, right = -1;  // operands
  };

  /// InputError that shows the place when the text is none.
  static Formula parse(std::string_view text);
  const std::string& text() const { return text_; }
  /// Of each sample. InputError for a column that is not there or holds no numbers.
  std::vector<double> values(const Dataset& from) const;

 private:
  friend class FormulaParser;
  [[noreturn]] void fail_at(size_t at, const std::string& message) const;
  std::string text_;
  std::vector<Node> nodes_;  // operands come before what joins them, the last one is the whole
};

}  // namespace millrace::data
