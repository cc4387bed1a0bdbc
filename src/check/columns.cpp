#include "check/columns.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <limits>
#include <set>

#include "base/contains.h"
#include "base/fnv.h"
#include "data/table/group.h"
#include "data/table/read_columns.h"
#include "data/table/select.h"

namespace millrace::check {
namespace {

using data::ColumnKind;

constexpr double none = std::numeric_limits<double>::quiet_NaN();

/// Never 0, which stands for a missing value.
uint64_t code_of(uint64_t value) { return mixed_bits(value) | 1; }

void take_values(const data::ColumnValues& values, Column& into) {
  for (size_t i = 0; i < values.size(); ++i) {
    const bool there = values.has(i);
    double number = none;
    uint64_t code = 0;
    if (there && values.kind == ColumnKind::integer) number = static_cast<double>(values.integers[i]);
    if (there && values.kind == ColumnKind::real) number = values.reals[i];
    if (there && values.kind == ColumnKind::text) code = code_of(fnv1a(values.contents[i]));
    if (into.numeric && !std::isnan(number)) code = code_of(std::bit_cast<uint64_t>(number + 0.0));
    if (into.numeric) into.numbers.push_back(number);
    into.codes.push_back(code);
  }
}

std::vector<std::string> target_columns(const task::Task& task) {
  std::vector<std::string> names;
  for (const auto& output : task.outputs) {
    if (output->settings().find("column")) names.push_back(output->settings().text("column"));
    if (output->settings().find("columns"))
      for (const std::string& name : output->settings().texts("columns")) names.push_back(name);
  }
  return names;
}

/// Words of a column's name: "patientID" → patient, id.
std::set<std::string> name_words(const std::string& name) {
  std::set<std::string> words;
  std::string word;
  for (size_t i = 0; i <= name.size(); ++i) {
    const char c = i < name.size() ? name[i] : ' ';
    const bool letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    const bool begins = letter && std::isupper(static_cast<unsigned char>(c)) != 0 && !word.empty() &&
                        i > 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if ((!letter || begins) && !word.empty()) {
      words.insert(word);
      word.clear();
    }
    if (letter) word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return words;
}

}  // namespace

std::vector<std::pair<int64_t, int64_t>> looked_at(int64_t of, int64_t most) {
  constexpr int64_t run = 512;
  const int64_t runs = std::max<int64_t>(1, std::min(most, of) / run),
                length = of <= most ? (of + runs - 1) / runs : run;
  std::vector<std::pair<int64_t, int64_t>> all;
  for (int64_t r = 0; r < runs; ++r) {
    const int64_t first = of <= most ? r * length : r * (of - length) / std::max<int64_t>(1, runs - 1);
    if (first < of) all.emplace_back(first, std::min(length, of - first));
  }
  return all;
}

std::shared_ptr<const data::Dataset> rows_of_samples(const Context& context,
                                                     const std::shared_ptr<const data::Dataset>& samples) {
  return context.task()->recipe.data.group.empty() ? samples : data::rows_of(*samples);
}

Columns read_table(const Context& context, const data::Dataset& from, int64_t most) {
  if (most == 0) most = context.most_samples();
  Columns table;
  std::vector<std::string> inputs;
  for (const auto& input : context.task()->inputs)
    for (const std::string& name : input->columns()) inputs.push_back(name);
  const std::vector<std::string> targets = target_columns(*context.task());
  std::vector<size_t> places;
  for (size_t c = 0; c < from.columns().size(); ++c) {
    const data::Column& column = from.columns()[c];
    if (!data::is_tabular(column.kind)) continue;
    Column one{.name = column.name,
               .numeric = data::is_numeric(column.kind),
               .integer = column.kind == ColumnKind::integer};
    one.input = contains(inputs, column.name);
    one.target = contains(targets, column.name);
    table.columns.push_back(std::move(one));
    places.push_back(c);
  }
  for (const auto& [first, count] : looked_at(from.count(), most)) {
    if (places.empty()) break;
    const auto values = data::read_columns(from, first, count, places);
    for (size_t c = 0; c < places.size(); ++c) take_values(values[c], table.columns[c]);
    table.samples += count;
  }
  return table;
}

namespace {

Targets targets_of(const task::Output& output, const Context& context, const Columns& table,
                   const std::shared_ptr<const data::Dataset>& from, int64_t most) {
  Targets targets;
  targets.output = &output;
  if (output.from()) return targets;
  if (output.settings().find("column")) targets.column = output.settings().text("column");
  targets.names = output.classes();
  const Column* column = find_column(table, targets.column);
  std::vector<int64_t> labels;
  if (!targets.names.empty()) labels = output.labels({context.task()->recipe, from});
  if (!labels.empty()) {
    for (const auto& [first, count] : looked_at(from->count(), most))
      for (int64_t i = first; i < first + count; ++i)
        targets.classes.push_back(labels[static_cast<size_t>(i)]);
  } else if (targets.names.empty() && column && column->numeric) {
    targets.numbers = column->numbers;
  }
  return targets;
}

}  // namespace

std::vector<Targets> read_all_targets(const Context& context,
                                      const std::shared_ptr<const data::Dataset>& from, int64_t most) {
  if (most == 0) most = context.most_samples();
  const Columns table = read_table(context, *from, most);
  std::vector<Targets> all;
  for (const auto& output : context.task()->outputs)
    if (Targets own = targets_of(*output, context, table, from, most); own.known())
      all.push_back(std::move(own));
  return all;
}

Targets read_targets(const Context& context, const std::shared_ptr<const data::Dataset>& from, int64_t most) {
  std::vector<Targets> all = read_all_targets(context, from, most);
  return all.empty() ? Targets() : std::move(all[0]);
}

Targets read_targets_of(const task::Output& output, const Context& context,
                        const std::shared_ptr<const data::Dataset>& from, int64_t most) {
  if (most == 0) most = context.most_samples();
  return targets_of(output, context, read_table(context, *from, most), from, most);
}

const Column* find_column(const Columns& columns, const std::string& name) {
  for (const Column& column : columns.columns)
    if (column.name == name) return &column;
  return nullptr;
}

bool named_like(const std::string& name, std::initializer_list<const char*> list,
                std::initializer_list<const char*> beside) {
  const std::set<std::string> words = name_words(name);
  const auto in = [](std::initializer_list<const char*> all, const std::string& word) {
    return std::find(all.begin(), all.end(), word) != all.end();
  };
  return std::any_of(words.begin(), words.end(), [&](const auto& word) { return in(list, word); }) &&
         std::all_of(words.begin(), words.end(),
                     [&](const auto& word) { return in(list, word) || in(beside, word); });
}

Moments moments_of(const std::vector<double>& numbers) {
  Moments m;
  double squares = 0;
  for (const double x : numbers) {
    if (!std::isfinite(x)) continue;
    m.least = m.count ? std::min(m.least, x) : x;
    m.most = m.count ? std::max(m.most, x) : x;
    ++m.count;
    const double before = x - m.mean;
    m.mean += before / static_cast<double>(m.count);
    squares += before * (x - m.mean);
  }
  if (m.count > 0) m.deviation = std::sqrt(squares / static_cast<double>(m.count));
  return m;
}

}  // namespace millrace::check
