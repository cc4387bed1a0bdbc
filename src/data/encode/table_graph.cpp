#include "data/encode/table_graph.h"

#include <algorithm>
#include <limits>

namespace millrace::data {

int64_t raw_numbers(const std::vector<TableEncoder::Dense>& dense) {
  return std::count_if(dense.begin(), dense.end(), [](const auto& column) { return !column.flag; });
}

namespace {

/// What is done with the raw columns, one number each, and how the result is put together.
struct NumberColumns {
  std::vector<double> means, scales;
  std::vector<float> filled;
  std::vector<int64_t> flagged,
      places;  // where each column of the result is: behind the numbers stand the flags

  explicit NumberColumns(const std::vector<TableEncoder::Dense>& dense) {
    for (const TableEncoder::Dense& column : dense) {
      if (column.flag) {
        places.push_back(raw_numbers(dense) + static_cast<int64_t>(flagged.size()));
        flagged.push_back(static_cast<int64_t>(means.size()) - 1);
        continue;
      }
      const bool standard = column.deviation > 0;
      places.push_back(static_cast<int64_t>(means.size()));
      means.push_back(standard ? column.mean : 0);
      scales.push_back(standard ? 1 / column.deviation : 1);
      filled.push_back(standard ? 0.0f : static_cast<float>(column.mean));
    }
  }
};

template <typename T>
Tensor constants(DType dtype, const Shape& shape, const std::vector<T>& values) {
  Array array(dtype, shape);
  std::copy(values.begin(), values.end(), array.as<T>().begin());
  return Tensor(std::move(array));
}

Tensor columns_of(const Tensor& from, const std::vector<int64_t>& which) {
  const Tensor operands[] = {from, constants(i64, {static_cast<int64_t>(which.size())}, which)};
  return apply("gather", operands, {{"axis", int64_t{1}}})[0];
}

}  // namespace

Tensor encode_numbers(const Tensor& numbers, const std::vector<TableEncoder::Dense>& dense) {
  const NumberColumns c(dense);
  const Shape shape{1, static_cast<int64_t>(c.means.size())};
  const Tensor there = abs(numbers) <= static_cast<double>(std::numeric_limits<float>::max());
  const Tensor standard = (numbers - constants(f64, shape, c.means)) * constants(f64, shape, c.scales);
  const Tensor result = where(there, cast(standard, f32), constants(f32, shape, c.filled));
  if (c.flagged.empty()) return result;
  const Tensor both[] = {result, cast(logical_not(columns_of(there, c.flagged)), f32)};
  return columns_of(concat(both, 1), c.places);
}

}  // namespace millrace::data
