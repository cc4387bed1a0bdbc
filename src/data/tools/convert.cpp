#include "data/tools/convert.h"

#include <algorithm>

#include "base/format.h"

namespace millrace::data {

std::vector<size_t> choose_columns(const Dataset& dataset, const std::vector<std::string>& names) {
  std::vector<size_t> chosen;
  for (const std::string& name : names) chosen.push_back(dataset.column(name));
  for (size_t i = 0; names.empty() && i < dataset.columns().size(); ++i) chosen.push_back(i);
  return chosen;
}

bool writes_names(const Format& format) { return format.name == "folder"; }

namespace {

/// Of numbers of classes what they stand for; none of other columns.
std::vector<std::string> names_at(const Dataset& dataset, size_t column) {
  return dataset.columns().at(column).kind == ColumnKind::integer ? dataset.class_names(column)
                                                                  : std::vector<std::string>();
}

}  // namespace

std::vector<Column> columns_at(const Dataset& dataset, const std::vector<size_t>& chosen, bool names) {
  std::vector<Column> columns;
  for (const size_t column : chosen) {
    columns.push_back(dataset.columns().at(column));
    if (names && !names_at(dataset, column).empty()) columns.back().kind = ColumnKind::text;
  }
  return columns;
}

void copy_samples(const Dataset& dataset, const std::vector<size_t>& chosen, DatasetWriter& writer,
                  const std::function<void(int64_t, int64_t)>& progress, bool names) {
  constexpr int64_t run = 1024;
  std::vector<std::vector<std::string>> named(chosen.size());
  for (size_t c = 0; names && c < chosen.size(); ++c) named[c] = names_at(dataset, chosen[c]);
  std::vector<Value> values(chosen.size());
  for (int64_t begin = 0; begin < dataset.count(); begin += run) {
    const int64_t end = std::min(dataset.count(), begin + run);
    std::vector<ColumnValues> read;
    std::vector<std::shared_ptr<const ColumnValues>> columns;
    if (dataset.read_run(begin, end - begin, chosen, read))
      for (ColumnValues& each : read)
        columns.push_back(std::make_shared<const ColumnValues>(std::move(each)));
    for (int64_t i = begin; i < end; ++i) {
      for (size_t c = 0; c < chosen.size(); ++c) {
        values[c] = columns.empty() ? dataset.read(i, chosen[c])
                                    : value_at(columns[c], static_cast<size_t>(i - begin));
        const auto* number = named[c].empty() ? nullptr : std::get_if<int64_t>(&values[c]);
        if (!number) continue;
        if (*number < 0 || *number >= std::ssize(named[c]))
          fail<InputError>("{}: its class is {}, and there are {}", dataset.name(i), *number,
                           named[c].size());
        values[c] = Value(named[c][static_cast<size_t>(*number)]);
      }
      writer.add(values);
      if (progress) progress(i + 1, dataset.count());
    }
  }
  writer.finish();
}

}  // namespace millrace::data
