// Learning means and vocabularies.
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "base/contains.h"
#include "base/format.h"
#include "base/parallel_for.h"
#include "base/text_hash.h"
#include "data/encode/table_encoder.h"
#include "data/encode/table_ranges.h"
#include "data/encode/table_seen.h"
#include "data/encode/table_state.h"
#include "data/table/column_values.h"
#include "data/table/dates.h"
#include "data/table/read_columns.h"

namespace millrace::data {
namespace {

constexpr int64_t part_rows = 1 << 14;

void look(const ColumnValues& values, const TableUse& use, const TableOptions& options, TableSeen& seen) {
  using Role = TableUse::Role;
  std::string made;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool text = values.kind == ColumnKind::text;
    if (!values.has(i) || (use.role != Role::number && text && is_missing_text(values.contents[i]))) {
      ++seen.missing;
    } else if (use.role == Role::number) {
      const bool whole = values.kind == ColumnKind::integer;
      double value = whole ? static_cast<double>(values.integers[i]) : values.reals[i];
      if (use.forced_date)
        value = use.digits ? date_of_digits(value).value_or(NAN) : value / microseconds_a_day;
      else if (whole && date_of_digits(value))
        ++seen.dates;
      is_number(value) ? seen.number(value) : void(++seen.missing);
    } else if (options.hash_ids == 0) {
      count_text(text ? values.contents[i] : made = category_text(values, i), seen.times);
    }
  }
}

/// Are all whole numbers of a column dates by their digits, 20241231?
bool all_digits(const Dataset& dataset, size_t column) {
  if (dataset.columns()[column].kind != ColumnKind::integer) return false;
  int64_t dates = 0;
  for (int64_t first = 0; first < dataset.count(); first += part_rows) {
    const size_t which[] = {column};
    const auto values = read_columns(dataset, first, std::min(part_rows, dataset.count() - first), which);
    for (size_t i = 0; i < values[0].size(); ++i)
      if (values[0].has(i) && ++dates > 0 && !date_of_digits(static_cast<double>(values[0].integers[i])))
        return false;
  }
  return dates > 0;
}

std::vector<TableUse> used_columns(const Dataset& dataset, const TableOptions& options) {
  for (const auto* names : {&options.leave_out, &options.categories, &options.numbers, &options.dates})
    for (const std::string& name : *names) (void)dataset.column(name);
  std::vector<TableUse> used;
  for (size_t c = 0; c < dataset.columns().size(); ++c) {
    const auto& [name, kind] = dataset.columns()[c];
    if (name == "__key__" || contains(options.leave_out, name)) continue;
    TableUse use{.column = c,
                 .forced_number = contains(options.numbers, name),
                 .forced_date = contains(options.dates, name),
                 .named = contains(options.named, name)};
    if (contains(options.categories, name) && kind != ColumnKind::array) {
      use.role = TableUse::Role::category;
    } else if (kind == ColumnKind::text) {
      use.role = options.hash_ids > 0 ? TableUse::Role::category : TableUse::Role::text;
    } else if (!is_numeric(kind)) {
      continue;
    } else if (use.forced_date) {
      use.digits = all_digits(dataset, c);
    }
    used.push_back(use);
  }
  if (used.size() == 1) used[0].only = true;
  if (used.empty())
    fail<InputError>("{}: has no columns of numbers or texts to learn from{}", dataset.path(),
                     options.leave_out.empty() ? ""
                                               : fmt::format(" beside those that are the output's, another "
                                                             "input's or left out: {}",
                                                             fmt::join(options.leave_out, ", ")));
  return used;
}

/// Would it be used, were it of numbers or texts?
bool is_other_kind(const Column& column, const TableOptions& options) {
  return !is_tabular(column.kind) && column.name != "__key__" && !contains(options.leave_out, column.name);
}

/// Nothing is left of the columns: each with its reason.
[[noreturn]] void fail_with_nothing(const Dataset& dataset, const std::vector<TableColumn>& decisions) {
  std::vector<std::string> reasons;
  for (const TableColumn& each : decisions) reasons.push_back(fmt::format("{}: {}", each.column, each.why));
  fail<InputError>(
      "{}: no column is left to learn from ({}); name those that are of use after all, as "
      "input.categories, input.numbers or input.dates; or read the texts of one, by "
      "input.kind = \"text\" and input.column",
      dataset.path(), fmt::join(reasons, "; "));
}

}  // namespace

TableEncoder TableEncoder::learn(const Dataset& dataset, const TableOptions& options) {
  if (options.hash_ids == 1 || options.hash_ids < 0 || options.least_count < 1)
    fail<InputError>("{}: hashing needs 2 ids or more, and vocabularies 1 text or more", dataset.path());
  const std::vector<TableUse> used = used_columns(dataset, options);
  std::vector<size_t> columns;
  for (const TableUse& each : used) columns.push_back(each.column);
  const int64_t count = dataset.count(), parts = (count + part_rows - 1) / part_rows;
  // Parts are added in their order, as soon as all before them are.
  std::vector<TableSeen> seen(used.size());
  std::map<int64_t, std::vector<TableSeen>> waiting;
  int64_t next = 0;
  std::mutex mutex;
  parallel_for(parts, options.threads, [&](int64_t p) {
    const int64_t first = p * part_rows, rows = std::min(part_rows, count - first);
    const auto values = read_columns(dataset, first, rows, columns);
    std::vector<TableSeen> mine(used.size());
    for (size_t u = 0; u < used.size(); ++u) look(values[u], used[u], options, mine[u]);
    if (options.progress) options.progress(first + rows, count);
    const std::lock_guard lock(mutex);
    waiting.emplace(p, std::move(mine));
    for (; !waiting.empty() && waiting.begin()->first == next; ++next) {
      for (size_t u = 0; u < used.size(); ++u) seen[u].add(std::move(waiting.begin()->second[u]));
      waiting.erase(waiting.begin());
    }
  });

  auto state = std::make_shared<TableState>();
  state->hash_ids = options.hash_ids;
  for (size_t c = 0, u = 0; c < dataset.columns().size(); ++c)
    if (u < used.size() && used[u].column == c) {
      add_column(dataset, used[u], std::move(seen[u]), options, *state);
      ++u;
    } else if (options.decide && is_other_kind(dataset.columns()[c], options)) {
      TableColumn other;
      other.column = dataset.columns()[c].name;
      other.taken_as = "left out";
      other.why = fmt::format("it holds {}, and a table takes numbers and texts",
                              kind_name(dataset.columns()[c].kind));
      state->decisions.push_back(std::move(other));
    }
  if (state->dense.empty() && state->categories.empty()) fail_with_nothing(dataset, state->decisions);
  state->index();
  if (options.bins > 0) add_ranges(*state, numbers_of_rows(TableEncoder(state), dataset), options.bins);
  return TableEncoder(std::move(state));
}

}  // namespace millrace::data
