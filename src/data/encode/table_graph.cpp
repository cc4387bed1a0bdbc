#include "data/encode/table_graph.h"

#include <algorithm>
#include <limits>

#include "ops/build.h"

namespace millrace::data {
namespace {

/// A row of constants, [1, values].
template <typename T>
millrace::Value row(Graph& graph, DType dtype, const std::vector<T>& values) {
  Array array(dtype, {1, static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), array.as<T>().begin());
  return graph.constant(std::move(array));
}

millrace::Value columns(Graph& graph, millrace::Value from, const std::vector<int64_t>& which) {
  Array array(i64, {static_cast<int64_t>(which.size())});
  std::copy(which.begin(), which.end(), array.as<int64_t>().begin());
  return graph.add("gather", {from, graph.constant(std::move(array))}, {{"axis", int64_t{1}}});
}

}  // namespace

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

millrace::Value encode_numbers(Graph& graph, millrace::Value numbers,
                               const std::vector<TableEncoder::Dense>& dense) {
  const NumberColumns c(dense);
  ops::Build b(graph);
  const millrace::Value most = b.scalar(f64, std::numeric_limits<float>::max());
  const millrace::Value there = b.binary("less_equal", b.unary("abs", numbers), most);
  const millrace::Value standard = b.mul(b.sub(numbers, row(graph, f64, c.means)), row(graph, f64, c.scales));
  millrace::Value result = b.select(there, b.cast(standard, f32), row(graph, f32, c.filled));
  if (c.flagged.empty()) return result;
  const millrace::Value missing = b.cast(b.unary("logical_not", columns(graph, there, c.flagged)), f32);
  result = graph.add("concat", {result, missing}, {{"axis", int64_t{1}}});
  return columns(graph, result, c.places);
}

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
