#include <millrace/dataset.h>

#include "base/format.h"
#include "data/table/column_values.h"

namespace millrace::data {
namespace {

class MemoryDataset final : public Dataset {
 public:
  MemoryDataset(std::string name, std::vector<Column> columns, std::vector<std::vector<Value>> rows)
      : Dataset(std::move(name)), rows_(std::move(rows)) {
    columns_ = std::move(columns);
    set_origin("memory", {});
  }

  int64_t count() const override { return static_cast<int64_t>(rows_.size()); }
  Value read(int64_t index, size_t column) const override {
    return rows_.at(static_cast<size_t>(index)).at(column);
  }
  bool has(int64_t index, size_t column) const override {
    return !std::holds_alternative<std::monostate>(rows_.at(static_cast<size_t>(index)).at(column));
  }
  std::string name(int64_t index) const override { return rows_.size() == 1 ? path() : Dataset::name(index); }

 private:
  std::vector<std::vector<Value>> rows_;
};

}  // namespace

std::unique_ptr<Dataset> memory_dataset(std::string name, std::vector<Column> columns,
                                        std::vector<std::vector<Value>> rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() != columns.size())
      fail<InputError>("{}#{}: {} values for {} columns", name, i, rows[i].size(), columns.size());
    for (size_t c = 0; c < columns.size(); ++c)
      if (const std::string fault = value_fault(rows[i][c], columns[c]); !fault.empty())
        fail<InputError>("{}#{}: {}", name, i, fault);
  }
  return std::make_unique<MemoryDataset>(std::move(name), std::move(columns), std::move(rows));
}

}  // namespace millrace::data
