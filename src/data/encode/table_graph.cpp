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

millrace::Value encode_numbers(Graph& graph, millrace::Value numbers,
                               const std::vector<TableEncoder::Dense>& dense) {
  std::vector<double> means, scales;
  std::vector<float> filled;
  std::vector<int64_t> flagged,
      places;  // where each column of the result is: behind the numbers stand the flags
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
  ops::Build b(graph);
  const millrace::Value most = b.scalar(f64, std::numeric_limits<float>::max());
  const millrace::Value there = b.binary("less_equal", b.unary("abs", numbers), most);
  const millrace::Value standard = b.mul(b.sub(numbers, row(graph, f64, means)), row(graph, f64, scales));
  millrace::Value result = b.select(there, b.cast(standard, f32), row(graph, f32, filled));
  if (flagged.empty()) return result;
  const millrace::Value missing = b.cast(b.unary("logical_not", columns(graph, there, flagged)), f32);
  result = graph.add("concat", {result, missing}, {{"axis", int64_t{1}}});
  return columns(graph, result, places);
}

}  // namespace millrace::data
