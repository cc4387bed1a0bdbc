#include "data/table/query.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/format.h"
#include "base/words.h"

namespace millrace::data {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

/// Recursive descent, one function a level of binding.
class QueryParser {
 public:
  explicit QueryParser(Query& query) : query_(query), text_(query.text_) {}

  void parse() {
    if (text_.size() > most_text) fail<InputError>("a condition of {} characters is too long", text_.size());
    either();
    skip();
    if (at_ < text_.size()) query_.fail_at(at_, "this is one thing too many; join conditions with and, or");
  }

 private:
  using Node = Query::Node;
  using Operand = Query::Operand;
  static constexpr size_t most_text = 100'000;
  static constexpr size_t most_nodes = 2000;
  static constexpr int deepest = 200;

  void skip() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool word(std::string_view wanted) {
    skip();
    size_t end = at_;
    while (end < text_.size() && (begins_name(text_[end]) || is_digit(text_[end]) || text_[end] == '.'))
      ++end;
    if (lower_case(text_.substr(at_, end - at_)) != wanted) return false;
    at_ = end;
    return true;
  }
  bool sign(std::string_view wanted) {
    skip();
    if (!std::string_view(text_).substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  int add(Node node) {
    if (query_.nodes_.size() == most_nodes) query_.fail_at(at_, "the condition has too many parts");
    query_.nodes_.push_back(std::move(node));
    return static_cast<int>(query_.nodes_.size()) - 1;
  }

  int either() {
    int left = both();
    while (word("or")) {
      const int right = both();
      left = add({Node::What::either, left, right, "", {}});
    }
    return left;
  }
  int both() {
    int left = negation();
    while (word("and")) {
      const int right = negation();
      left = add({Node::What::both, left, right, "", {}});
    }
    return left;
  }
  int negation() {
    skip();
    if (++depth_ > deepest) query_.fail_at(at_, "the condition is nested too deeply");
    int node = 0;
    if (word("not")) {
      node = add({Node::What::negation, negation(), -1, "", {}});
    } else if (sign("(")) {
      node = either();
      if (!sign(")")) query_.fail_at(at_, "a ) is missing here");
    } else {
      node = comparison();
    }
    --depth_;
    return node;
  }

  int comparison() {
    Operand left = operand();
    skip();
    const size_t before = at_;
    const bool negated = word("not");
    if (word("in")) {
      const int among = add({Node::What::among, -1, -1, "", list(std::move(left))});
      return negated ? add({Node::What::negation, among, -1, "", {}}) : among;
    }
    if (word("like")) {
      Operand pattern = operand();
      if (left.what != Operand::What::column || pattern.what != Operand::What::text)
        query_.fail_at(pattern.at,
                       "\"like\" wants a column before it and a text in quotes behind it: name like '*_a_*'");
      const int like = add({Node::What::compare, -1, -1, "like", {std::move(left), std::move(pattern)}});
      return negated ? add({Node::What::negation, like, -1, "", {}}) : like;
    }
    if (negated) query_.fail_at(before, "after \"not\" only \"in (…)\" or \"like\" can follow here");
    static constexpr std::pair<const char*, const char*> signs[] = {{"==", "="},  {"!=", "!="}, {"<>", "!="},
                                                                    {"<=", "<="}, {">=", ">="}, {"=", "="},
                                                                    {"<", "<"},   {">", ">"}};
    for (const auto& [written, meant] : signs)
      if (sign(written)) {
        Operand right = operand();
        if (left.what != Operand::What::column && right.what != Operand::What::column)
          query_.fail_at(left.at, "this compares two values; one side must be a column");
        return add({Node::What::compare, -1, -1, meant, {std::move(left), std::move(right)}});
      }
    query_.fail_at(at_, "a comparison is missing here: =, !=, <, <=, >, >= or in (…)");
  }

  std::vector<Operand> list(Operand column) {
    if (column.what != Operand::What::column) query_.fail_at(column.at, "\"in\" wants a column before it");
    if (!sign("(")) query_.fail_at(at_, "a list is wanted here: in (3, 5)");
    std::vector<Operand> operands = {std::move(column)};
    do {
      operands.push_back(operand());
      if (operands.back().what == Operand::What::column)
        query_.fail_at(operands.back().at, "a list holds numbers or texts in quotes");
    } while (sign(","));
    if (!sign(")")) query_.fail_at(at_, "a , or ) is missing here");
    return operands;
  }

  Operand operand() {
    skip();
    Operand operand;
    operand.at = at_;
    if (at_ == text_.size()) query_.fail_at(at_, "a column or a value is missing here");
    const char c = text_[at_];
    if (c == '\'' || c == '"' || c == '`') {
      operand.what = c == '`' ? Operand::What::column : Operand::What::text;
      operand.text = quoted(c);
    } else if (begins_name(c)) {
      const size_t begin = at_;
      while (at_ < text_.size() && (begins_name(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.'))
        ++at_;
      operand.what = Operand::What::column;
      operand.text = text_.substr(begin, at_ - begin);
      for (const char* reserved : {"and", "or", "not", "in", "like"})
        if (lower_case(operand.text) == reserved)
          query_.fail_at(begin, fmt::format("a column or a value is missing before \"{}\"", operand.text));
    } else {
      number(operand);
    }
    return operand;
  }

  /// A quote inside is written twice.
  std::string quoted(char quote) {
    const size_t begin = at_++;
    std::string value;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == quote) {
        ++at_;
        if (at_ == text_.size() || text_[at_] != quote) return value;
      }
      value += text_[at_];
    }
    query_.fail_at(begin, "the quote that begins here has no end");
  }

  void number(Operand& operand) {
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    const char* digits = begin != end && *begin == '+' ? begin + 1 : begin;
    const auto [real_end, real_error] = std::from_chars(digits, end, operand.number);
    if (real_error != std::errc() || !std::isfinite(operand.number))
      query_.fail_at(at_, "a column, a number or a text in quotes is wanted here");
    const auto [whole_end, whole_error] = std::from_chars(digits, end, operand.integer);
    const bool whole = whole_error == std::errc() && whole_end == real_end;
    operand.what = whole ? Operand::What::integer : Operand::What::number;
    at_ += static_cast<size_t>(real_end - begin);
    if (at_ < text_.size() && begins_name(text_[at_]))
      query_.fail_at(at_, "a number ends in a letter; texts stand in quotes");
  }

  Query& query_;
  const std::string& text_;
  size_t at_ = 0;
  int depth_ = 0;
};

Query Query::parse(std::string_view text) {
  Query query;
  query.text_ = text;
  QueryParser(query).parse();
  return query;
}

void Query::fail_at(size_t at, const std::string& message) const {
  // Long conditions are shown around the place.
  constexpr size_t before = 50, after = 30;
  const size_t begin = at > before ? at - before : 0;
  std::string shown = text_.substr(begin, before + after), mark;
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  for (size_t i = begin; i < at; ++i)
    if ((static_cast<unsigned char>(text_[i]) & 0xc0) != 0x80) mark += ' ';
  fail<InputError>("in the condition: {}\n  {}\n  {}^", message, shown, mark);
}

std::string quoted_column(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(),
                                 [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
  return plain && !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) ? name
                                                                                      : "`" + name + "`";
}

std::string has_a_value(const std::string& column) { return fmt::format("{0} = {0}", quoted_column(column)); }

}  // namespace millrace::data
