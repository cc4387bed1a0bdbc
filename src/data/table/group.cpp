#include "data/table/group.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/format.h"
#include "data/table/column_values.h"
#include "data/table/join.h"
#include "data/table/place.h"
#include "data/table/read_columns.h"
#include "data/table/view.h"

namespace millrace::data {
namespace {

constexpr int64_t grouped_run = 1 << 14;  // rows read at once

class Grouped final : public View {
 public:
  Grouped(std::shared_ptr<const Dataset> table, std::string column)
      : View(table), table_(std::move(table)), column_(std::move(column)) {
    const size_t place = table_->column(column_);
    if (const ColumnKind kind = table_->columns()[place].kind; !is_tabular(kind))
      fail<InputError>("{}: the column '{}' holds {}s; rows belong together by a number or a text", path(),
                       column_, kind_name(kind));
    std::unordered_map<std::string, size_t> known;
    std::vector<size_t> of_row;
    std::vector<int64_t> counts;
    for (int64_t first = 0; first < table_->count(); first += grouped_run) {
      const auto values =
          read_columns(*table_, first, std::min(grouped_run, table_->count() - first), {&place, 1});
      for (size_t i = 0; i < values[0].size(); ++i) {
        if (!values[0].has(i))
          fail<InputError>(
              "{}: has no {}, which says what rows belong together: leave such rows out by data.where",
              place_of(*table_, first + static_cast<int64_t>(i)), column_);
        const bool text = values[0].kind == ColumnKind::text;
        const auto [at, added] = known.try_emplace(
            text ? std::string(values[0].contents[i]) : category_text(values[0], i), counts.size());
        if (added) {
          names_.push_back(at->first);
          counts.push_back(0);
        }
        ++counts[at->second];
        of_row.push_back(at->second);
      }
    }
    begins_.assign(1, 0);
    for (const int64_t count : counts) begins_.push_back(begins_.back() + count);
    std::vector<int64_t> next(begins_.begin(), begins_.end() - 1);
    rows_.resize(of_row.size());
    for (size_t row = 0; row < of_row.size(); ++row)
      rows_[static_cast<size_t>(next[of_row[row]]++)] = static_cast<int64_t>(row);
  }

  int64_t count() const override { return std::ssize(names_); }
  SampleRows rows(int64_t index) const override {
    const auto i = static_cast<size_t>(index);
    const auto first = static_cast<size_t>(begins_.at(i));
    return {table_, std::span(rows_).subspan(first, static_cast<size_t>(begins_.at(i + 1)) - first)};
  }
  std::string name(int64_t index) const override {
    return fmt::format("{}: {} {}", path(), column_, names_.at(static_cast<size_t>(index)));
  }
  void will_read(int64_t index) const override {
    for (const int64_t row : rows(index).rows) table_->will_read(row);
  }
  void verify(int64_t index) const override {
    for (const int64_t row : rows(index).rows) table_->verify(row);
  }

 private:
  int64_t at(int64_t index) const override {
    return rows_[static_cast<size_t>(begins_.at(static_cast<size_t>(index)))];
  }

  std::shared_ptr<const Dataset> table_;
  std::string column_;
  std::vector<std::string> names_;
  std::vector<int64_t> begins_, rows_;  // of each sample, in `rows_`
};

}  // namespace

std::shared_ptr<const Dataset> grouped(std::shared_ptr<const Dataset> table, const std::string& column) {
  return std::make_shared<Grouped>(std::move(table), column);
}

/// Is there a value that two rows have? Else each row is numbered, and none belong together. (A few rows say
/// nothing, and of what is grouped already each sample has its own.)
static bool comes_again(const Dataset& dataset, size_t column) {
  constexpr int64_t part = 1 << 12, few = 20;
  if (dataset.count() < few || dataset.rows(0).table) return true;
  std::unordered_set<std::string> seen;
  for (int64_t first = 0; first < dataset.count(); first += part) {
    const auto values = read_columns(dataset, first, std::min(part, dataset.count() - first), {&column, 1});
    for (size_t i = 0; i < values[0].size(); ++i)
      if (values[0].has(i) &&
          !seen.insert(values[0].kind == ColumnKind::text ? std::string(values[0].contents[i])
                                                          : category_text(values[0], i))
               .second)
        return true;
  }
  return false;
}

std::string query_column(const Dataset& dataset) {
  for (const std::string name : {"qid", "query_id", "query"}) {
    const auto place = dataset.find_column(name);
    const ColumnKind kind = place ? dataset.columns()[*place].kind : ColumnKind::json;
    // A text called query is rather what was asked.
    if ((kind == ColumnKind::integer || (kind == ColumnKind::text && name != "query")) &&
        comes_again(dataset, *place))
      return name;
  }
  return {};
}

std::shared_ptr<const Dataset> rows_of(const Dataset& samples) {
  std::vector<std::pair<std::string, std::shared_ptr<const Dataset>>> tables;
  std::vector<std::vector<int64_t>> rows;
  for (int64_t i = 0; i < samples.count(); ++i) {
    const SampleRows own = samples.rows(i);
    if (!own.table) fail<InternalError>("{}: its samples are rows", samples.path());
    if (tables.empty() || tables.back().second != own.table) {
      tables.emplace_back(own.table->path(), own.table);
      rows.emplace_back();
    }
    rows.back().insert(rows.back().end(), own.rows.begin(), own.rows.end());
  }
  for (size_t k = 0; k < tables.size(); ++k)
    tables[k].second = select(std::move(tables[k].second), std::move(rows[k]));
  return tables.size() == 1 ? std::move(tables[0].second) : join(std::move(tables));
}

std::vector<int64_t> group_sizes(const Dataset& samples) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < samples.count(); ++i) sizes.push_back(std::ssize(samples.rows(i).rows));
  return sizes;
}

}  // namespace millrace::data
