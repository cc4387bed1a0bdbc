#include "data/table/read_columns.h"

#include <deque>
#include <memory>

#include "base/format.h"
#include "data/table/column_values.h"

namespace millrace::data {
namespace {

/// False for no value; else one of the kind of `values`.
bool put(Value value, size_t i, ColumnValues& values, std::deque<std::string>& texts) {
  if (const auto* integer = std::get_if<int64_t>(&value))
    values.integers[i] = *integer;
  else if (const auto* real = std::get_if<double>(&value))
    values.reals[i] = *real;
  else if (auto* text = std::get_if<std::string>(&value))
    values.contents[i] = texts.emplace_back(std::move(*text));
  else
    return false;
  return true;
}

}  // namespace

std::vector<ColumnValues> read_columns(const Dataset& dataset, int64_t first, int64_t count,
                                       std::span<const size_t> columns) {
  std::vector<ColumnValues> read;
  for (const size_t c : columns) {
    const Column& column = dataset.columns().at(c);
    if (!is_tabular(column.kind))
      fail<InputError>("{}: the column '{}' holds neither numbers nor texts ({}); leave it out",
                       dataset.path(), column.name, kind_name(column.kind));
  }
  if (dataset.read_run(first, count, columns, read)) return read;
  const auto texts = std::make_shared<std::deque<std::string>>();
  read.assign(columns.size(), {});
  for (size_t k = 0; k < columns.size(); ++k) {
    start_values(read[k], dataset.columns()[columns[k]].kind, static_cast<size_t>(count));
    read[k].present.resize(static_cast<size_t>(count));
    read[k].owners.push_back(texts);
  }
  // Sample by sample: formats that have to parse one whole keep the last.
  for (int64_t i = 0; i < count; ++i)
    for (size_t k = 0; k < columns.size(); ++k) {
      Value value = dataset.read(first + i, columns[k]);
      if (number_value(value) || std::holds_alternative<std::string>(value))
        if (const std::string fault = value_fault(value, dataset.columns()[columns[k]]); !fault.empty())
          fail<InputError>("{}: {}", dataset.name(first + i), fault);
      read[k].present[static_cast<size_t>(i)] =
          put(std::move(value), static_cast<size_t>(i), read[k], *texts);
    }
  return read;
}

}  // namespace millrace::data
