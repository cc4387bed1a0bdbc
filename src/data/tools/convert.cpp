#include "data/tools/convert.h"

#include <algorithm>

namespace millrace::data {

std::vector<size_t> choose_columns(const Dataset& dataset, const std::vector<std::string>& names) {
  std::vector<size_t> chosen;
  for (const std::string& name : names) chosen.push_back(dataset.column(name));
  for (size_t i = 0; names.empty() && i < dataset.columns().size(); ++i) chosen.push_back(i);
  return chosen;
}

std::vector<Column> columns_at(const Dataset& dataset, const std::vector<size_t>& chosen) {
  std::vector<Column> columns;
  for (const size_t column : chosen) columns.push_back(dataset.columns().at(column));
  return columns;
}

void copy_samples(const Dataset& dataset, const std::vector<size_t>& chosen, DatasetWriter& writer,
                  const std::function<void(int64_t, int64_t)>& progress) {
  constexpr int64_t run = 1024;
  std::vector<Value> values(chosen.size());
  for (int64_t begin = 0; begin < dataset.count(); begin += run) {
    const int64_t end = std::min(dataset.count(), begin + run);
    std::vector<ColumnValues> read;
    std::vector<std::shared_ptr<const ColumnValues>> columns;
    if (dataset.read_run(begin, end - begin, chosen, read))
      for (ColumnValues& each : read)
        columns.push_back(std::make_shared<const ColumnValues>(std::move(each)));
    for (int64_t i = begin; i < end; ++i) {
      for (size_t c = 0; c < chosen.size(); ++c)
        values[c] = columns.empty() ? dataset.read(i, chosen[c])
                                    : value_at(columns[c], static_cast<size_t>(i - begin));
      writer.add(values);
      if (progress) progress(i + 1, dataset.count());
    }
  }
  writer.finish();
}

}  // namespace millrace::data
