// A few rows in memory as a data set.
#pragma once

#include <string>
#include <vector>

#include "data/table/dataset.h"

namespace millrace::data {

class MemoryDataset final : public Dataset {
 public:
  /// Each row has a value for each column. `path` is what messages call it; the only row is called so, too.
  MemoryDataset(std::string path, std::vector<Column> columns, std::vector<std::vector<Value>> rows);

  int64_t count() const override { return static_cast<int64_t>(rows_.size()); }
  Value read(int64_t index, size_t column) const override {
    return rows_.at(static_cast<size_t>(index)).at(column);
  }
  bool has(int64_t index, size_t column) const override {
    return !std::holds_alternative<std::monostate>(rows_.at(static_cast<size_t>(index)).at(column));
  }
  std::string name(int64_t index) const override;

 private:
  std::vector<std::vector<Value>> rows_;
};

}  // namespace millrace::data
