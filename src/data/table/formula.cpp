#include "data/table/formula.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string>

#include "base/format.h"
#include "base/utf8.h"
#include "data/table/read_columns.h"

namespace millrace::data {
namespace {

using Apply = double (*)(double a, double b);

/// A number, a column, or what becomes of one or two nodes before it.
struct FormulaNode {
  enum class What { number, column, function } what = What::number;
  double number = 0;
  std::string column = {};
  size_t at = 0;  // of the column in the text
  Apply apply = nullptr;
  int left = -1, right = -1;  // operands
  size_t read = 0;            // of a column: its place among those that are read
};

struct FormulaFunction {
  std::string_view name;
  int operands;
  Apply apply;
};
constexpr FormulaFunction functions[] = {
    {"abs", 1, [](double a, double) { return std::abs(a); }},
    {"exp", 1, [](double a, double) { return std::exp(a); }},
    {"log", 1, [](double a, double) { return std::log(a); }},
    {"sqrt", 1, [](double a, double) { return std::sqrt(a); }},
    {"min", 2, [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); }},
    {"max", 2, [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }}};

/// Recursive descent, one function a level of binding.
class FormulaParser {
 public:
  explicit FormulaParser(std::string_view text) : text_(text) {
    sum();
    skip();
    if (at_ < text_.size()) fail_at(at_, "this is one thing too many; join values with + - * /");
  }

  /// Operands come before what joins them, the last one is the whole.
  std::vector<FormulaNode>& nodes() { return nodes_; }
  [[noreturn]] void fail_at(size_t at, const std::string& message) const {
    const std::string below(code_points(std::string_view(text_).substr(0, at)), ' ');
    fail<InputError>("in the formula: {}\n  {}\n  {}^", message, text_, below);
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

  int add(FormulaNode node) {
    constexpr size_t most_nodes = 2000;
    if (nodes_.size() == most_nodes) fail_at(at_, "the formula has too many parts");
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }
  int join(Apply apply, int left, int right = -1) {
    return add({.what = FormulaNode::What::function, .apply = apply, .left = left, .right = right});
  }

  int sum() {
    int left = product();
    for (;;) {
      if (sign('+'))
        left = join([](double a, double b) { return a + b; }, left, product());
      else if (sign('-'))
        left = join([](double a, double b) { return a - b; }, left, product());
      else
        return left;
    }
  }
  int product() {
    int left = unary();
    for (;;) {
      if (sign('*'))
        left = join([](double a, double b) { return a * b; }, left, unary());
      else if (sign('/'))
        left = join([](double a, double b) { return a / b; }, left, unary());
      else
        return left;
    }
  }
  int unary() {
    constexpr int deepest = 200;
    if (++depth_ > deepest) fail_at(at_, "the formula is nested too deeply");
    const int node = sign('-') ? join([](double a, double) { return -a; }, unary()) : atom();
    --depth_;
    return node;
  }

  int atom() {
    skip();
    if (at_ == text_.size()) fail_at(at_, "a column or a number is missing here");
    if (sign('(')) {
      const int inner = sum();
      if (!sign(')')) fail_at(at_, "a ) is missing here");
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
    const std::string_view name = text_.substr(begin, at_ - begin);
    return sign('(') ? call(name, begin) : column(name, begin);
  }

  int column(std::string_view name, size_t begin) {
    return add({.what = FormulaNode::What::column, .column = std::string(name), .at = begin});
  }

  int quoted() {
    const size_t begin = at_, end = text_.find('`', at_ + 1);
    if (end == std::string_view::npos) fail_at(begin, "the ` that begins here has no end");
    at_ = end + 1;
    return column(text_.substr(begin + 1, end - begin - 1), begin);
  }

  int call(std::string_view name, size_t begin) {
    const auto* const found = std::find_if(std::begin(functions), std::end(functions),
                                           [&](const FormulaFunction& each) { return each.name == name; });
    if (found == std::end(functions))
      fail_at(begin, fmt::format("there is no function '{}' (abs, exp, log, sqrt, min, max)", name));
    const int left = sum();
    int right = -1;
    if (found->operands == 2) {
      if (!sign(',')) fail_at(at_, fmt::format("{} takes two values: a , is missing here", name));
      right = sum();
    }
    if (!sign(')')) fail_at(at_, "a ) is missing here");
    return join(found->apply, left, right);
  }

  int number() {
    double value = 0;
    const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
    const auto [rest, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || !std::isfinite(value)) fail_at(at_, "a column or a number is wanted here");
    at_ += static_cast<size_t>(rest - begin);
    return add({.number = value});
  }

  std::string_view text_;
  std::vector<FormulaNode> nodes_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<double> formula_values(std::string_view text, const Dataset& from) {
  FormulaParser formula(text);
  std::vector<FormulaNode>& nodes = formula.nodes();
  std::vector<size_t> columns;
  for (FormulaNode& node : nodes) {
    if (node.what != FormulaNode::What::column) continue;
    const size_t column = from.column(node.column);  // names the nearest
    if (!is_numeric(from.columns()[column].kind))
      formula.fail_at(node.at, fmt::format("'{}' holds no numbers", node.column));
    node.read = columns.size();
    columns.push_back(column);
  }
  constexpr int64_t part = 1 << 14;
  std::vector<double> all;
  std::vector<double> row(nodes.size());
  for (int64_t first = 0; first < from.count(); first += part) {
    const int64_t count = std::min(part, from.count() - first);
    const auto read = read_columns(from, first, count, columns);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      for (size_t n = 0; n < nodes.size(); ++n) {
        const FormulaNode& node = nodes[n];
        if (node.what == FormulaNode::What::number) {
          row[n] = node.number;
        } else if (node.what == FormulaNode::What::column) {
          const ColumnValues& values = read[node.read];
          row[n] = !values.has(i)                       ? NAN
                   : values.kind == ColumnKind::integer ? static_cast<double>(values.integers[i])
                                                        : values.reals[i];
        } else {
          row[n] = node.apply(row[static_cast<size_t>(node.left)],
                              node.right < 0 ? 0 : row[static_cast<size_t>(node.right)]);
        }
      }
      all.push_back(row.back());
    }
  }
  return all;
}

}  // namespace millrace::data
