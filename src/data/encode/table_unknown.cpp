// Categories of which nearly every value is one that training did not have.
#include <algorithm>
#include <span>

#include "data/encode/table_encoder.h"
#include "data/encode/table_state.h"
#include "data/table/column_values.h"
#include "data/table/read_columns.h"

namespace millrace::data {

std::vector<TableUnknown> TableEncoder::unknown_categories(const Dataset& dataset) const {
  constexpr int64_t most_rows = 10000, least_rows = 10;
  constexpr double nearly_all = 0.9;
  const size_t width = categories().size();
  const int64_t rows = std::min(dataset.count(), most_rows);
  if (state_->hash_ids > 0 || width == 0 || rows < least_rows) return {};
  std::vector<double> numbers(static_cast<size_t>(rows) * dense().size());
  std::vector<int64_t> ids(static_cast<size_t>(rows) * width);
  read_raw(dataset, 0, rows, numbers.data(), ids.data(), Bad::missing);
  std::vector<TableUnknown> found;
  for (size_t k = 0; k < width; ++k) {
    TableUnknown one{categories()[k].column, 0, rows, {}, -1};
    for (int64_t row = 0; row < rows; ++row) {
      if (ids[static_cast<size_t>(row) * width + k] != 0) continue;
      if (one.unknown++ == 0) one.sample = row;
    }
    if (static_cast<double>(one.unknown) < nearly_all * static_cast<double>(rows)) continue;
    const size_t column = dataset.column(one.column);
    const auto values = read_columns(dataset, one.sample, 1, std::span(&column, 1));
    if (values[0].has(0))
      one.text = values[0].kind == ColumnKind::text ? std::string(values[0].contents[0])
                                                    : category_text(values[0], 0);
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace millrace::data
