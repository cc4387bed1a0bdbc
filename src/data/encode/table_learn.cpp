// Learning means and vocabularies.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "base/parallel_for.h"
#include "data/encode/table_encoder.h"
#include "data/encode/table_state.h"
#include "data/table/column_values.h"
#include "data/table/read_columns.h"

namespace millrace::data {
namespace {

constexpr int64_t part_rows = 1 << 14;

/// Sums of a column, in the order of the data whatever the number of threads.
struct Seen {
  int64_t numbers = 0, missing = 0;
  double mean = 0, squares = 0;
  std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>> times;

  void number(double value) {
    const double before = value - mean;
    mean += before / static_cast<double>(++numbers);
    squares += before * (value - mean);
  }
  void text(std::string_view value) {
    const auto at = times.find(value);
    if (at != times.end())
      ++at->second;
    else
      times.emplace(value, 1);
  }
  void add(const Seen& later) {
    missing += later.missing;
    for (const auto& [value, count] : later.times) times[value] += count;
    if (later.numbers == 0) return;
    const auto mine = static_cast<double>(numbers), theirs = static_cast<double>(later.numbers);
    const double apart = later.mean - mean;
    mean += apart * theirs / (mine + theirs);
    squares += later.squares + apart * apart * mine * theirs / (mine + theirs);
    numbers += later.numbers;
  }
};

enum class Role { number, ordinal, category };

struct Used {
  size_t column;
  Role role;
  const std::vector<std::string>* order = nullptr;
};

void look(const ColumnValues& values, const Used& used, const TableOptions& options, Seen& seen) {
  std::string made;
  for (size_t i = 0; i < values.size(); ++i) {
    if (used.role == Role::number) {
      const double value = !values.has(i)                       ? NAN
                           : values.kind == ColumnKind::integer ? static_cast<double>(values.integers[i])
                                                                : values.reals[i];
      is_number(value) ? seen.number(value) : void(++seen.missing);
    } else if (!values.has(i)) {
      used.role == Role::category ? seen.text("") : void(++seen.missing);
    } else if (used.role == Role::ordinal) {
      const auto at = std::find(used.order->begin(), used.order->end(), values.contents[i]);
      at != used.order->end() ? seen.number(static_cast<double>(at - used.order->begin()))
                              : void(++seen.missing);
    } else if (options.hash_ids == 0) {
      seen.text(values.kind == ColumnKind::text ? values.contents[i] : made = category_text(values, i));
    }
  }
}

std::vector<Used> used_columns(const Dataset& dataset, const TableOptions& options) {
  for (const auto* names : {&options.leave_out, &options.categories})
    for (const std::string& name : *names) (void)dataset.column(name);
  const auto in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<Used> used;
  for (const auto& [name, order] : options.ordinals) {
    if (dataset.columns()[dataset.column(name)].kind != ColumnKind::text)
      fail<InputError>("{}: the column '{}' holds no texts that could have an order", dataset.path(), name);
    if (order.size() < 2 || std::set<std::string>(order.begin(), order.end()).size() != order.size())
      fail<InputError>("{}: the order of '{}' needs two texts or more, each once", dataset.path(), name);
  }
  for (size_t c = 0; c < dataset.columns().size(); ++c) {
    const auto& [name, kind] = dataset.columns()[c];
    if (name == "__key__" || in(options.leave_out, name)) continue;
    const auto ordinal = options.ordinals.find(name);
    if (ordinal != options.ordinals.end())
      used.push_back({c, Role::ordinal, &ordinal->second});
    else if (kind == ColumnKind::text || (in(options.categories, name) && kind != ColumnKind::array))
      used.push_back({c, Role::category});
    else if (kind == ColumnKind::integer || kind == ColumnKind::real)
      used.push_back({c, Role::number});
  }
  if (used.empty()) fail<InputError>("{}: has no columns of numbers or texts to learn from", dataset.path());
  return used;
}

/// The texts of a vocabulary: the most frequent first.
std::vector<std::string> vocabulary_of(const Seen& seen, const TableOptions& options) {
  std::vector<std::pair<std::string, int64_t>> list(seen.times.begin(), seen.times.end());
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> texts;
  for (auto& [text, times] : list)
    if (times >= options.least_count && static_cast<int64_t>(texts.size()) < options.most_categories)
      texts.push_back(std::move(text));
  return texts;
}

}  // namespace

TableEncoder TableEncoder::learn(const Dataset& dataset, const TableOptions& options) {
  if (options.hash_ids == 1 || options.hash_ids < 0 || options.least_count < 1 || options.most_categories < 1)
    fail<InputError>("{}: hashing needs 2 ids or more, and vocabularies 1 text or more", dataset.path());
  const std::vector<Used> used = used_columns(dataset, options);
  std::vector<size_t> columns;
  for (const Used& each : used) columns.push_back(each.column);
  const int64_t count = dataset.count(), parts = (count + part_rows - 1) / part_rows;
  std::vector<std::vector<Seen>> of_part(static_cast<size_t>(parts));
  parallel_for(parts, options.threads, [&](int64_t p) {
    const int64_t first = p * part_rows, rows = std::min(part_rows, count - first);
    const auto values = read_columns(dataset, first, rows, columns);
    auto& mine = of_part[static_cast<size_t>(p)];
    mine.resize(used.size());
    for (size_t u = 0; u < used.size(); ++u) look(values[u], used[u], options, mine[u]);
    if (options.progress) options.progress(first + rows, count);
  });
  std::vector<Seen> seen(used.size());
  for (const auto& part : of_part)
    for (size_t u = 0; u < used.size(); ++u) seen[u].add(part[u]);

  auto state = std::make_shared<TableState>();
  state->hash_ids = options.hash_ids;
  for (size_t u = 0; u < used.size(); ++u) {
    const std::string& name = dataset.columns()[used[u].column].name;
    const Seen& of = seen[u];
    if (used[u].role == Role::category) {
      const bool numbers = dataset.columns()[used[u].column].kind != ColumnKind::text;
      Category category{name, options.hash_ids, {}, numbers};
      if (options.hash_ids == 0) {
        category.vocabulary = vocabulary_of(of, options);
        category.ids = 1 + static_cast<int64_t>(category.vocabulary.size());
      }
      state->categories.push_back(std::move(category));
    } else {
      Dense dense{name, false, of.mean, 1, {}};
      const double deviation = of.numbers > 0 ? std::sqrt(of.squares / static_cast<double>(of.numbers)) : 0;
      // What missing values are stays the mean.
      if (options.standardise && deviation > 0) dense.deviation = deviation;
      if (used[u].order) dense.ordinal = *used[u].order;
      if (!options.standardise) dense.deviation = 0;
      state->dense.push_back(dense);
      if (of.missing > 0) state->dense.push_back({name, true, 0, 1, {}});
    }
  }
  state->index();
  return TableEncoder(std::move(state));
}

}  // namespace millrace::data
