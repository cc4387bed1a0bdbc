// The samples that a condition chooses.
#include <algorithm>
#include <bit>
#include <cstring>
#include <fnmatch.h>
#include <map>

#include "base/format.h"
#include "base/suggest.h"
#include "data/index/index.h"
#include "data/query.h"

namespace millrace::data {
namespace {

enum class Truth : uint8_t { no, yes, unknown };

Truth negated(Truth truth) {
  return truth == Truth::unknown ? truth : truth == Truth::yes ? Truth::no : Truth::yes;
}

/// A value of a sample or of the condition.
struct Cell {
  enum class What : uint8_t { missing, integer, real, text } what = What::missing;
  int64_t integer = 0;
  double real = 0;
  std::string_view text;
  double number() const { return what == What::integer ? static_cast<double>(integer) : real; }
};

Truth truth_of(const std::string& comparison, const Cell& a, const Cell& b) {
  if (a.what == Cell::What::missing || b.what == Cell::What::missing) return Truth::unknown;
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

/// The condition with its columns found in one index.
class Bound {
 public:
  Bound(const Query& query, const Index& index, const std::map<std::string, std::string>& names)
      : query_(query), index_(index), cells_(query.nodes().size()), columns_(query.nodes().size()) {
    for (size_t n = 0; n < query.nodes().size(); ++n)
      for (const Query::Operand& operand : query.nodes()[n].operands) {
        const bool column = operand.what == Query::Operand::What::column;
        columns_[n].push_back(column ? index.small(names.at(operand.text)) : nullptr);
        if (column && !columns_[n].back())
          query.fail_at(operand.at,
                        fmt::format("the samples have no '{}' that can be asked for", operand.text));
        cells_[n].push_back(constant(operand));
      }
    check();
  }

  Truth operator()(int64_t i) { return evaluate(static_cast<int>(query_.nodes().size()) - 1, i); }

 private:
  static Cell constant(const Query::Operand& operand) {
    Cell cell;
    cell.what = operand.what == Query::Operand::What::text      ? Cell::What::text
                : operand.what == Query::Operand::What::integer ? Cell::What::integer
                                                                : Cell::What::real;
    cell.integer = operand.integer;
    cell.real = operand.number;
    cell.text = operand.text;
    return cell;
  }

  /// Numbers are compared with numbers, texts with texts.
  void check() const {
    for (size_t n = 0; n < cells_.size(); ++n) {
      const auto& operands = query_.nodes()[n].operands;
      const auto is_text = [&](size_t k) {
        return columns_[n][k] ? columns_[n][k]->column.kind == ColumnKind::text
                              : cells_[n][k].what == Cell::What::text;
      };
      for (size_t k = 1; k < operands.size(); ++k) {
        if (is_text(k) == is_text(0)) continue;
        const size_t column = columns_[n][0] ? 0 : 1, other = columns_[n][0] ? k : 0;
        query_.fail_at(operands[other].at,
                       is_text(column)
                           ? fmt::format("'{}' holds texts; write the text in quotes", operands[column].text)
                           : fmt::format("'{}' holds numbers; this is a text", operands[column].text));
      }
    }
  }

  Cell cell(size_t node, size_t k, int64_t i) const {
    const Index::Small* small = columns_[node][k];
    if (!small) return cells_[node][k];
    Cell cell;
    const auto at = static_cast<size_t>(i);
    if (small->column.kind == ColumnKind::text) {
      if (small->codes[at] == Index::no_text) return cell;
      cell.what = Cell::What::text;
      cell.text = Index::text(*small, small->codes[at]);
    } else if (small->present.empty() || (small->present[at / 8] >> (at % 8) & 1) != 0) {
      const bool whole = small->column.kind == ColumnKind::integer;
      cell.what = whole ? Cell::What::integer : Cell::What::real;
      cell.integer = whole ? static_cast<int64_t>(small->numbers[at]) : 0;
      cell.real = whole ? 0 : std::bit_cast<double>(small->numbers[at]);
    }
    return cell;
  }

  Truth evaluate(int number, int64_t i) const {
    const auto at = static_cast<size_t>(number);
    const Query::Node& node = query_.nodes()[at];
    switch (node.what) {
      case Query::Node::What::negation:
        return negated(evaluate(node.left, i));
      case Query::Node::What::both:
      case Query::Node::What::either: {
        const Truth decides = node.what == Query::Node::What::both ? Truth::no : Truth::yes;
        const Truth left = evaluate(node.left, i);
        if (left == decides) return left;
        const Truth right = evaluate(node.right, i);
        return right == decides || left != Truth::unknown ? right : left;
      }
      case Query::Node::What::compare:
        return truth_of(node.comparison, cell(at, 0, i), cell(at, 1, i));
      case Query::Node::What::among:
        break;
    }
    const Cell value = cell(at, 0, i);
    if (value.what == Cell::What::missing) return Truth::unknown;
    for (size_t k = 1; k < node.operands.size(); ++k)
      if (truth_of("=", value, cells_[at][k]) == Truth::yes) return Truth::yes;
    return Truth::no;
  }

  const Query& query_;
  const Index& index_;
  std::vector<std::vector<Cell>> cells_;
  std::vector<std::vector<const Index::Small*>> columns_;
};

/// What the names of the condition are called in the data: "label" may be cls.
std::map<std::string, std::string> resolve(const Dataset& dataset, const Query& query) {
  const std::vector<std::string> known = small_names(dataset);
  const auto has = [&](std::string_view name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  std::map<std::string, std::string> names;
  for (const Query::Node& node : query.nodes())
    for (const Query::Operand& operand : node.operands) {
      if (operand.what != Query::Operand::What::column) continue;
      std::string name = operand.text;
      if (name == "label" && !has(name))
        for (const char* other : {"cls", "class", "target"})
          if (!has(name) && has(other)) name = other;
      if (!has(name)) {
        for (const Column& column : dataset.columns())
          if (column.name == name)
            query.fail_at(operand.at,
                          fmt::format("'{}' holds {} values, which cannot be compared; there are: {}", name,
                                      kind_name(column.kind), fmt::join(known, ", ")));
        query.fail_at(operand.at, fmt::format("there is no column '{}'; did you mean '{}'? There are: {}",
                                              name, nearest(name, known), fmt::join(known, ", ")));
      }
      names[operand.text] = name;
    }
  return names;
}

class Selection final : public Dataset {
 public:
  Selection(std::shared_ptr<const Dataset> whole, std::vector<int64_t> samples)
      : Dataset(whole->path()), whole_(std::move(whole)), samples_(std::move(samples)) {
    columns_ = whole_->columns();
    set_origin(whole_->format(), whole_->notes());
  }
  int64_t count() const override { return static_cast<int64_t>(samples_.size()); }
  Value read(int64_t index, size_t column) const override { return whole_->read(at(index), column); }
  bool has(int64_t index, size_t column) const override { return whole_->has(at(index), column); }
  std::vector<std::string> class_names(size_t column) const override { return whole_->class_names(column); }
  std::string name(int64_t index) const override { return whole_->name(at(index)); }
  void verify(int64_t index) const override { whole_->verify(at(index)); }
  void will_read(int64_t index) const override { whole_->will_read(at(index)); }

 private:
  int64_t at(int64_t index) const { return samples_.at(static_cast<size_t>(index)); }
  std::shared_ptr<const Dataset> whole_;
  std::vector<int64_t> samples_;
};

class SourceSelection final : public Source {
 public:
  SourceSelection(std::shared_ptr<const Source> whole, std::vector<int64_t> samples)
      : whole_(std::move(whole)), samples_(std::move(samples)) {
    classes_ = whole_->classes();
    path_ = whole_->path();
    notes_ = whole_->notes();
  }
  int64_t count() const override { return static_cast<int64_t>(samples_.size()); }
  int64_t label(int64_t index) const override { return whole_->label(at(index)); }
  std::string name(int64_t index) const override { return whole_->name(at(index)); }
  Sample read(int64_t index) const override { return whole_->read(at(index)); }
  void will_read(int64_t index) const override { whole_->will_read(at(index)); }
  std::string key(int64_t index) const override { return whole_->key(at(index)); }
  std::vector<Column> extra_columns() const override { return whole_->extra_columns(); }
  Value extra(int64_t index, size_t column) const override { return whole_->extra(at(index), column); }
  std::vector<double> numbers(const std::string& column) const override {
    const std::vector<double> all = whole_->numbers(column);
    std::vector<double> own;
    for (const int64_t index : samples_) own.push_back(all[static_cast<size_t>(index)]);
    return own;
  }

 private:
  int64_t at(int64_t index) const { return samples_.at(static_cast<size_t>(index)); }
  std::shared_ptr<const Source> whole_;
  std::vector<int64_t> samples_;
};

}  // namespace

std::vector<int64_t> matching(const Dataset& dataset, const Query& query) {
  const auto names = resolve(dataset, query);
  std::set<std::string> wanted;
  for (const auto& [written, name] : names) wanted.insert(name);
  std::vector<int64_t> samples;
  int64_t first = 0;
  for (const auto& index : indices_for(dataset, wanted)) {
    Bound bound(query, *index, names);
    for (int64_t i = 0; i < index->count(); ++i)
      if (bound(i) == Truth::yes) samples.push_back(first + i);
    first += index->count();
  }
  return samples;
}

std::shared_ptr<const Dataset> select(std::shared_ptr<const Dataset> dataset, const Query& query) {
  std::vector<int64_t> samples = matching(*dataset, query);
  if (samples.empty())
    fail<InputError>("{}: no sample matches the condition {}", dataset->path(), query.text());
  return std::make_shared<Selection>(std::move(dataset), std::move(samples));
}

std::unique_ptr<Source> select(std::shared_ptr<const Source> source, std::vector<int64_t> samples) {
  return std::make_unique<SourceSelection>(std::move(source), std::move(samples));
}

}  // namespace millrace::data
