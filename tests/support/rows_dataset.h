// Rows in memory as a data set.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::testing {

class RowsDataset : public data::Dataset {
 public:
  RowsDataset(const std::string& path, std::vector<data::Column> columns,
              std::vector<std::vector<data::Value>> rows, std::vector<std::string> class_names = {})
      : Dataset(path), rows_(std::move(rows)), class_names_(std::move(class_names)) {
    columns_ = std::move(columns);
  }
  int64_t count() const override { return static_cast<int64_t>(rows_.size()); }
  data::Value read(int64_t index, size_t column) const override {
    return rows_.at(static_cast<size_t>(index)).at(column);
  }
  bool has(int64_t index, size_t column) const override {
    return !std::holds_alternative<std::monostate>(read(index, column));
  }
  std::vector<std::string> class_names(size_t) const override { return class_names_; }

 private:
  std::vector<std::vector<data::Value>> rows_;
  std::vector<std::string> class_names_;
};

}  // namespace millrace::testing
