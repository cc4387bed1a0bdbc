#include "data/convert.h"

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
  std::vector<Value> values(chosen.size());
  for (int64_t i = 0; i < dataset.count(); ++i) {
    for (size_t c = 0; c < chosen.size(); ++c) values[c] = dataset.read(i, chosen[c]);
    writer.add(values);
    if (progress) progress(i + 1, dataset.count());
  }
  writer.finish();
}

}  // namespace millrace::data
