#include "data/encode/table_state.h"

#include <cmath>
#include <limits>

namespace millrace::data {

void TableState::index() {
  ids.clear();
  ordinals.clear();
  for (const TableCategory& category : categories) {
    ids.emplace_back();
    for (size_t i = 0; i < category.vocabulary.size(); ++i)
      ids.back().emplace(category.vocabulary[i], static_cast<int64_t>(i) + 1);
  }
  for (const TableDense& column : dense) {
    ordinals.emplace_back();
    for (size_t i = 0; i < column.ordinal.size(); ++i)
      ordinals.back().emplace(column.ordinal[i], static_cast<int64_t>(i));
  }
}

bool is_number(double value) { return std::abs(value) <= std::numeric_limits<float>::max(); }

}  // namespace millrace::data
