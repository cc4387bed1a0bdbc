#include "data/table/formula.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>

#include "base/format.h"
#include "data/table/read_columns.h"

namespace millrace::data {

using What = Formula::Node::What;

/// Recursive descent, one function a level of binding.
class FormulaParser {
 public:
  explicit FormulaParser(Formula& formula) : formula_(formula), text_(formula.text_) {}

  void parse() {
    sum();
    skip();
    if (at_ < text_.size()) formula_.fail_at(at_, "this is one thing too many; join values with + - * /");
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool sign(char wanted) {
    skip();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  int add(Formula::Node node) {
    constexpr size_t most_nodes = 2000;
    if (formula_.nodes_.size() == most_nodes) formula_.fail_at(at_, "the formula has too many parts");
    formula_.nodes_.push_back(std::move(node));
    return static_cast<int>(formula_.nodes_.size()) - 1;
  }
  int join(What what, int left, int right = -1) {
    return add({.what = what, .number = 0, .column = {}, .at = at_, .left = left, .right = right});
  }

  int sum() {
    int left = product();
    for (;;) {
      if (sign('+'))
        left = join(What::add, left, product());
      else if (sign('-'))
        left = join(What::subtract, left, product());
      else
        return left;
    }
  }
  int product() {
    int left = unary();
    for (;;) {
      if (sign('*'))
        left = join(What::multiply, left, unary());
      else if (sign('/'))
        left = join(What::divide, left, unary());
      else
        return left;
    }
  }
  int unary() {
    constexpr int deepest = 200;
    if (++depth_ > deepest) formula_.fail_at(at_, "the formula is nested too deeply");
    const int node = sign('-') ? join(What::negative, unary()) : atom();
    --depth_;
    return node;
  }

  int atom() {
    skip();
    if (at_ == text_.size()) formula_.fail_at(at_, "a column or a number is missing here");
    if (sign('(')) {
      const int inner = sum();
      if (!sign(')')) formula_.fail_at(at_, "a ) is missing here");
      return inner;
    }
    if (text_[at_] == '`') return quoted();
    const auto begins_name = [](char c) {
      return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
    };
    if (!begins_name(text_[at_])) return number();
    const size_t begin = at_;
    while (at_ < text_.size() && (begins_name(text_[at_]) ||
                                  std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.'))
      ++at_;
    std::string name = text_.substr(begin, at_ - begin);
    if (sign('(')) return call(name, begin);
    return add({.what = What::column, .number = 0, .column = std::move(name), .at = begin});
  }

  int quoted() {
    const size_t begin = at_, end = text_.find('`', at_ + 1);
    if (end == std::string::npos) formula_.fail_at(begin, "the ` that begins here has no end");
    at_ = end + 1;
    return add(
        {.what = What::column, .number = 0, .column = text_.substr(begin + 1, end - begin - 1), .at = begin});
  }

  int call(const std::string& name, size_t begin) {
    static const std::map<std::string, What> of_one = {
        {"abs", What::abs}, {"exp", What::exp}, {"log", What::log}, {"sqrt", What::sqrt}};
    static const std::map<std::string, What> of_two = {{"min", What::min}, {"max", What::max}};
    const auto one = of_one.find(name), two = of_two.find(name);
    if (one == of_one.end() && two == of_two.end())
      formula_.fail_at(begin, fmt::format("there is no function '{}' (abs, exp, log, sqrt, min, max)", name));
    const int left = sum();
    int right = -1;
    if (one == of_one.end()) {
      if (!sign(',')) formula_.fail_at(at_, fmt::format("{} takes two values: a , is missing here", name));
      right = sum();
    }
    if (!sign(')')) formula_.fail_at(at_, "a ) is missing here");
    return join(one == of_one.end() ? two->second : one->second, left, right);
  }

  int number() {
    double value = 0;
    const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
    const auto [rest, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || !std::isfinite(value))
      formula_.fail_at(at_, "a column or a number is wanted here");
    const size_t at = at_;
    at_ += static_cast<size_t>(rest - begin);
    return add({.what = What::number, .number = value, .column = {}, .at = at});
  }

  Formula& formula_;
  const std::string& text_;
  size_t at_ = 0;
  int depth_ = 0;
};

namespace {

double formula_value(What what, double a, double b) {
  switch (what) {
    case What::negative:
      return -a;
    case What::add:
      return a + b;
    case What::subtract:
      return a - b;
    case What::multiply:
      return a * b;
    case What::divide:
      return a / b;
    case What::abs:
      return std::abs(a);
    case What::exp:
      return std::exp(a);
    case What::log:
      return std::log(a);
    case What::sqrt:
      return std::sqrt(a);
    case What::min:
      return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
    case What::max:
      return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
    case What::number:
    case What::column:
      break;
  }
  return NAN;
}

}  // namespace

Formula Formula::parse(std::string_view text) {
  Formula formula;
  formula.text_ = text;
  FormulaParser(formula).parse();
  return formula;
}

std::vector<double> Formula::values(const Dataset& from) const {
  std::vector<size_t> columns;
  std::vector<size_t> of_node(nodes_.size());
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].what != What::column) continue;
    const size_t column = from.column(nodes_[n].column);  // names the nearest
    if (!is_numeric(from.columns()[column].kind))
      fail_at(nodes_[n].at, fmt::format("'{}' holds no numbers", nodes_[n].column));
    of_node[n] = columns.size();
    columns.push_back(column);
  }
  constexpr int64_t part = 1 << 14;
  std::vector<double> all;
  std::vector<double> row(nodes_.size());
  for (int64_t first = 0; first < from.count(); first += part) {
    const int64_t count = std::min(part, from.count() - first);
    const auto read = read_columns(from, first, count, columns);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      for (size_t n = 0; n < nodes_.size(); ++n) {
        const Node& node = nodes_[n];
        if (node.what == What::number) {
          row[n] = node.number;
        } else if (node.what == What::column) {
          const ColumnValues& values = read[of_node[n]];
          row[n] = !values.has(i)                       ? NAN
                   : values.kind == ColumnKind::integer ? static_cast<double>(values.integers[i])
                                                        : values.reals[i];
        } else {
          row[n] = formula_value(node.what, row[static_cast<size_t>(node.left)],
                                 node.right < 0 ? 0 : row[static_cast<size_t>(node.right)]);
        }
      }
      all.push_back(row.back());
    }
  }
  return all;
}

void Formula::fail_at(size_t at, const std::string& message) const {
  fail<InputError>("in the formula: {}\n  {}\n  {}^", message, text_, std::string(at, ' '));
}

}  // namespace millrace::data
