// Deciding what the columns of a table are, by what was seen of them.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/format.h"
#include "data/encode/table_seen.h"
#include "data/formats/csv_cells.h"
#include "data/table/dates.h"
#include "data/table/labels.h"
#include "data/table/read_columns.h"

namespace millrace::data {
namespace {

/// Values that come less often share an id, which is trained by that, too, for values that are yet to come
/// (measured on Titanic, Adult and diamonds: docs/data.md), in tables of so many rows: in smaller ones any
/// value may be one that comes often.
constexpr int64_t least_category = 3, least_rare_rows = 100;
/// Categories beyond so many are "other".
constexpr int64_t most_categories = int64_t{1} << 20;
/// Tables of fewer rows say too little about themselves: numbers may grow by chance, and texts all differ.
/// Both are far below the tables that people divide, so that a part of one is decided on as the whole.
constexpr int64_t least_counted_rows = 10, least_differing_rows = 20;

/// The share of rows that teach what to make of an unknown category: measured, docs/data.md.
constexpr double hidden_rows = 0.02;

using Counted = std::vector<std::pair<std::string, int64_t>>;

/// The most frequent first, of equal ones in alphabetical order.
void sort_texts(Counted& list) {
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
}

/// Texts with how often they are, in an order that is the same for all numbers of threads.
Counted texts_of(TableSeen& seen) {
  Counted list;
  list.reserve(seen.times.size());
  while (!seen.times.empty()) {
    auto each = seen.times.extract(seen.times.begin());
    list.emplace_back(std::move(each.key()), each.mapped());
  }
  return list;
}

int64_t rows_of(const Counted& list) {
  int64_t rows = 0;
  for (const auto& [text, times] : list) rows += times;
  return rows;
}

class ColumnDecider {
 public:
  ColumnDecider(const Dataset& dataset, const TableUse& use, const TableOptions& options, TableState& state)
      : dataset_(dataset),
        use_(use),
        options_(options),
        state_(state),
        source_(dataset.columns()[use.column]),
        decimal_comma_(dataset.decimal_comma(use.column)),
        all_(dataset.count()) {
    decision_.column = source_.name;
  }

  void decide(TableSeen& seen) {
    decision_.missing = seen.missing;
    switch (use_.role) {
      case TableUse::Role::number:
        numbers(seen);
        break;
      case TableUse::Role::category:
        category(texts_of(seen));
        break;
      case TableUse::Role::text:
        texts(seen);
        break;
    }
    state_.decisions.push_back(std::move(decision_));
  }

 private:
  bool decided(int64_t least_rows) const { return options_.decide && !use_.only && all_ >= least_rows; }

  void leave_out(std::string why) {
    decision_.taken_as = "left out";
    decision_.why = std::move(why);
  }

  void numbers(const TableSeen& seen) {
    // Row numbers, as databases and pandas write them: what a model learns of these is the order of the file.
    constexpr double latest_begin = 10;  // the first rows may be among those to test on
    const bool counts_rows = source_.kind == ColumnKind::integer && seen.growing && seen.missing == 0 &&
                             seen.first >= 0 && seen.first <= latest_begin &&
                             seen.last - seen.first < 2 * static_cast<double>(all_);
    if (decided(least_counted_rows) && !use_.named && !use_.forced_number && !use_.forced_date) {
      if (counts_rows) return leave_out("it counts the rows");
      if (numbers_rows(seen)) return leave_out("it numbers the rows, in another order");
    }
    if (options_.decide && seen.numbers == 0) return leave_out("it has no value in any row");
    using Whole = TableDense::Whole;
    if (use_.forced_date)
      return dates(seen, false, "named in dates", use_.digits ? Whole::digits : Whole::microseconds);
    decision_.taken_as = "number";
    if (options_.decide && !use_.forced_number && seen.numbers > 0 && seen.dates == seen.numbers)
      decision_.why =
          "its whole numbers could all be dates, such as 20241231; input.dates takes them as such";
    dense(seen, {.column = source_.name, .decimal_comma = decimal_comma_});
  }

  /// Numbers of rows in any order, as files have them that were shuffled: from 0 or 1 on, each once; of a
  /// part of the rows at least half of those.
  bool numbers_rows(const TableSeen& seen) const {
    constexpr int64_t least_part = 100;
    if (!names_rows(source_.name) || source_.kind != ColumnKind::integer || seen.missing > 0 ||
        seen.least < 0)
      return false;
    const double rows = static_cast<double>(all_);
    const bool whole = seen.least <= 1 && seen.most - seen.least + 1 == rows;
    const bool part = all_ >= least_part && seen.most < 2 * rows;
    if (!whole && !part) return false;
    std::vector<bool> there(static_cast<size_t>(seen.most) + 1);
    for (int64_t first = 0; first < all_; first += 4096) {
      const auto values =
          read_columns(dataset_, first, std::min<int64_t>(4096, all_ - first), {&use_.column, 1});
      for (const int64_t value : values[0].integers) {
        if (value < 0 || value >= std::ssize(there) || there[static_cast<size_t>(value)]) return false;
        there[static_cast<size_t>(value)] = true;
      }
    }
    return true;
  }

  void dense(const TableSeen& seen, TableDense column) {
    column.mean = seen.mean;
    const double deviation =
        seen.numbers > 0 ? std::sqrt(seen.squares / static_cast<double>(seen.numbers)) : 0;
    column.deviation = deviation > 0 ? deviation : 1;
    state_.dense.push_back(std::move(column));
    if (seen.missing > 0) state_.dense.push_back({.column = source_.name, .flag = true});
  }

  /// Days, and where they stand in the periods that the column goes through.
  void dates(const TableSeen& seen, bool day_first, std::string why,
             TableDense::Whole whole = TableDense::Whole::none) {
    decision_.taken_as = "date";
    // Days of 1970-01-01 that are none: times alone.
    if (why.empty() && seen.hours && seen.least >= 0 && seen.most <= 1) why = "times of day";
    decision_.why = std::move(why);
    dense(seen,
          {.column = source_.name, .reads = TableDense::Reads::date, .day_first = day_first, .whole = whole});
    constexpr double year = 365.2425, week = 7, day = 1;
    for (const double period : {year, week, day}) {
      const bool times_of_day = seen.hours;
      if (period == day ? !times_of_day : seen.most - seen.least < period / 4) continue;
      for (const bool cosine : {false, true})
        state_.dense.push_back({.column = source_.name, .period = period, .cosine = cosine});
    }
  }

  void category(Counted all) {
    decision_.taken_as = "category";
    TableCategory category{source_.name, options_.hash_ids, {}, source_.kind != ColumnKind::text};
    if (options_.hash_ids == 0) {
      if (decision_.missing > 0) all.emplace_back("", decision_.missing);
      sort_texts(all);
      for (auto& [text, times] : all) {
        const bool kept = times >= options_.least_count && std::ssize(category.vocabulary) < most_categories;
        if (kept) category.vocabulary.push_back(std::move(text));
        if (!kept) decision_.rare += times;
      }
      category.ids = 1 + std::ssize(category.vocabulary);
      if (options_.decide && static_cast<double>(decision_.rare) < hidden_rows * static_cast<double>(all_))
        category.hidden = hidden_rows;
    }
    decision_.values = std::ssize(category.vocabulary);
    state_.categories.push_back(std::move(category));
  }

  void texts(TableSeen& seen) {
    Counted all = texts_of(seen);
    const auto is_missing = [](const auto& each) { return csv_missing_number(each.first); };
    const bool none_missing = std::none_of(all.begin(), all.end(), is_missing);
    const Counted some = none_missing ? Counted() : without_missing(all);
    const Counted& list = none_missing ? all : some;
    const int64_t present = rows_of(all);
    if (use_.forced_date) {
      const auto found = find_dates(list);
      return as_dates(all, found.value_or(FoundDates()), "named in dates");
    }
    const auto answers = !list.empty() && std::all_of(list.begin(), list.end(), [](const auto& each) {
      return yes_or_no(each.first) >= 0;
    });
    if (use_.forced_number) return answers ? as_answers(all) : as_numbers(all, "named in numbers");
    if (options_.decide && present == 0) return leave_out("it has no value in any row");
    if (options_.decide && answers && list.size() >= 2) return as_answers(all);
    if (options_.decide)
      if (const auto found = find_dates(list))
        return as_dates(all, *found, found->either ? "12/31 or 31/12 fit alike: taken as month first" : "");
    sort_texts(all);
    if (decided(least_differing_rows) && nearly_unique(all, present)) return;
    category(std::move(all));
  }

  /// Numbers, dates and answers know more words for missing values than categories do, of which "none" may be
  /// one.
  static Counted without_missing(const Counted& all) {
    Counted list;
    for (const auto& each : all)
      if (!csv_missing_number(each.first)) list.push_back(each);
    return list;
  }

  /// Fewer than half of the rows have a value that comes more than a few times: what would be learnt of the
  /// others is what their one row was.
  bool nearly_unique(const Counted& list, int64_t present) {
    int64_t kept = 0;
    for (const auto& [text, times] : list)
      if (times >= std::max<int64_t>(options_.least_count, 2)) kept += times;
    if (2 * kept >= present) return false;
    // Agreeing on how they are written, as in CSV: "$5" and "5 €" are not the same amount.
    CsvTally tally;
    for (const auto& [text, times] : list) tally.add(text, static_cast<uint32_t>(times));
    if (csv_column(tally, false).type != CsvColumn::Type::text) {
      as_numbers(list, "texts that are numbers");
      return true;
    }
    const std::string why = fmt::format("{} of {} values are rare or there once", present - kept, present);
    if (decision_.missing >= options_.least_count && present >= options_.least_count) {
      TableCategory category{source_.name, 2, {""}, false};
      decision_.taken_as = "there or not";
      decision_.why = why;
      decision_.values = 1;
      decision_.rare = present;
      state_.categories.push_back(std::move(category));
    } else {
      leave_out(why);
    }
    return true;
  }

  /// Sums of what the texts say.
  template <typename Read>
  TableSeen seen_as(const Counted& list, Read&& read) {
    TableSeen seen;
    seen.missing = decision_.missing;
    for (const auto& [text, times] : list) {
      if (csv_missing_number(text)) {
        seen.missing += times;
        continue;
      }
      const std::optional<double> value = read(text);
      if (!value || !is_number(*value)) {
        seen.missing += times;
        decision_.bad += times;
        continue;
      }
      seen.numbers_of(*value, times);
    }
    decision_.missing = seen.missing;
    return seen;
  }

  void as_dates(const Counted& list, FoundDates found, std::string why) {
    const TableSeen seen =
        seen_as(list, [&](const std::string& text) { return parse_date(text, found.order); });
    dates(seen, found.order == DateOrder::day_first, std::move(why));
  }

  void as_numbers(const Counted& list, std::string why) {
    int64_t by_point = 0, by_comma = 0;
    for (const auto& [text, times] : list) {
      if (csv_written_number(text, false)) by_point += times;
      if (csv_written_number(text, true)) by_comma += times;
    }
    const bool comma = by_comma > by_point;
    const TableSeen seen =
        seen_as(list, [&](const std::string& text) { return csv_written_number(text, comma); });
    decision_.taken_as = "number";
    decision_.why = std::move(why);
    dense(seen, {.column = source_.name, .decimal_comma = comma});
  }

  void as_answers(const Counted& list) {
    const TableSeen seen =
        seen_as(list, [](const std::string& text) { return std::optional<double>(yes_or_no(text)); });
    decision_.taken_as = "yes or no";
    dense(seen, {.column = source_.name, .reads = TableDense::Reads::boolean});
  }

  const Dataset& dataset_;
  const TableUse& use_;
  const TableOptions& options_;
  TableState& state_;
  const Column& source_;
  bool decimal_comma_;
  int64_t all_;
  TableColumn decision_;
};

}  // namespace

TableOptions usual_table(const Dataset& dataset) {
  TableOptions options;
  options.decide = true;
  if (dataset.count() >= least_rare_rows) options.least_count = least_category;
  return options;
}

void TableSeen::number(double value) {
  if (value <= last) growing = false;
  if (numbers == 0) first = value;
  last = value;
  numbers_of(value, 1);
}

void TableSeen::numbers_of(double value, int64_t rows) {
  const double before = value - mean, more = static_cast<double>(rows);
  numbers += rows;
  mean += before * more / static_cast<double>(numbers);
  squares += before * (value - mean) * more;
  least = std::min(least, value);
  most = std::max(most, value);
  hours = hours || value != std::floor(value);
}

void TableSeen::add(TableSeen later) {
  missing += later.missing;
  dates += later.dates;
  times.merge(later.times);  // which keeps those that are there already
  for (const auto& [value, count] : later.times) times[value] += count;
  if (later.numbers == 0) return;
  growing = growing && later.growing && (numbers == 0 || last < later.first);
  if (numbers == 0) first = later.first;
  last = later.last;
  least = std::min(least, later.least);
  most = std::max(most, later.most);
  hours = hours || later.hours;
  const auto mine = static_cast<double>(numbers), theirs = static_cast<double>(later.numbers);
  const double apart = later.mean - mean;
  mean += apart * theirs / (mine + theirs);
  squares += later.squares + apart * apart * mine * theirs / (mine + theirs);
  numbers += later.numbers;
}

void add_column(const Dataset& dataset, const TableUse& use, TableSeen seen, const TableOptions& options,
                TableState& state) {
  ColumnDecider(dataset, use, options, state).decide(seen);
}

}  // namespace millrace::data
