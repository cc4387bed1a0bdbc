#include "data/table/read_columns.h"

#include <deque>
#include <memory>

#include "base/format.h"

namespace millrace::data {

std::vector<ColumnValues> read_columns(const Dataset& dataset, int64_t first, int64_t count,
                                       std::span<const size_t> columns) {
  std::vector<ColumnValues> read;
  for (const size_t c : columns) {
    const Column& column = dataset.columns().at(c);
    if (column.kind != ColumnKind::integer && column.kind != ColumnKind::real &&
        column.kind != ColumnKind::text)
      fail<InputError>("{}: the column '{}' holds neither numbers nor texts ({}); leave it out",
                       dataset.path(), column.name, kind_name(column.kind));
  }
  if (dataset.read_run(first, count, columns, read)) return read;
  for (const size_t c : columns) {
    ColumnValues values;
    values.kind = dataset.columns()[c].kind;
    const auto texts = std::make_shared<std::deque<std::string>>();
    values.owners.push_back(texts);
    for (int64_t i = first; i < first + count; ++i) {
      Value value = dataset.read(i, c);
      values.present.push_back(!std::holds_alternative<std::monostate>(value));
      if (values.kind == ColumnKind::integer) {
        const auto* integer = std::get_if<int64_t>(&value);
        values.integers.push_back(integer ? *integer : 0);
      } else if (values.kind == ColumnKind::real) {
        const auto* real = std::get_if<double>(&value);
        values.reals.push_back(real ? *real : 0);
      } else {
        auto* text = std::get_if<std::string>(&value);
        values.contents.push_back(text ? texts->emplace_back(std::move(*text)) : std::string_view());
      }
    }
    read.push_back(std::move(values));
  }
  return read;
}

}  // namespace millrace::data
