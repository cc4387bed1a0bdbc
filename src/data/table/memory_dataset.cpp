#include "data/table/memory_dataset.h"

#include "base/format.h"

namespace millrace::data {

MemoryDataset::MemoryDataset(std::string path, std::vector<Column> columns,
                             std::vector<std::vector<Value>> rows)
    : Dataset(std::move(path)), rows_(std::move(rows)) {
  columns_ = std::move(columns);
  set_origin("memory", {});
  for (const std::vector<Value>& row : rows_)
    MILLRACE_CHECK(row.size() == columns_.size(), "a row of {} values for {} columns", row.size(),
                   columns_.size());
}

std::string MemoryDataset::name(int64_t index) const {
  return rows_.size() == 1 ? path() : Dataset::name(index);
}

}  // namespace millrace::data
