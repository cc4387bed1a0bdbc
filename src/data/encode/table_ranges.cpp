#include "data/encode/table_ranges.h"

#include <algorithm>
#include <cmath>

#include "data/encode/table_graph.h"
#include "data/encode/table_state.h"

namespace millrace::data {

std::vector<std::vector<double>> numbers_of_rows(const TableEncoder& encoder, const Dataset& dataset) {
  constexpr int64_t most = 100'000, block_rows = 1 << 14;
  const int64_t width = raw_numbers(encoder.dense()), rows = dataset.count(),
                step = std::max<int64_t>((rows + most - 1) / most, 1);
  std::vector<std::vector<double>> numbers(static_cast<size_t>(width));
  if (width == 0) return numbers;
  std::vector<double> block;
  std::vector<int64_t> ids;
  for (int64_t first = 0; first < rows; first += block_rows) {
    const int64_t count = std::min(block_rows, rows - first);
    block.resize(static_cast<size_t>(count * width));
    ids.resize(static_cast<size_t>(count) * encoder.categories().size());
    encoder.read_raw(dataset, first, count, block.data(), ids.empty() ? nullptr : ids.data(),
                     TableEncoder::Bad::missing);
    for (int64_t row = (step - first % step) % step; row < count; row += step)
      for (int64_t c = 0; c < width; ++c)
        if (const double value = block[static_cast<size_t>(row * width + c)]; is_number(value))
          numbers[static_cast<size_t>(c)].push_back(value);
  }
  for (auto& column : numbers) std::sort(column.begin(), column.end());
  return numbers;
}

namespace {

/// Quantiles that differ, ascending.
std::vector<double> edges_of(const std::vector<double>& sorted, int64_t bins) {
  std::vector<double> edges;
  if (sorted.empty()) return edges;
  for (int64_t k = 0; k <= bins; ++k) {
    const double value = sorted[static_cast<size_t>(static_cast<double>(sorted.size() - 1) *
                                                    static_cast<double>(k) / static_cast<double>(bins))];
    if (edges.empty() || value > edges.back()) edges.push_back(value);
  }
  return edges;
}

}  // namespace

void add_ranges(TableState& state, const std::vector<std::vector<double>>& numbers, int64_t bins) {
  std::vector<TableDense> dense;
  size_t raw = 0;
  for (size_t d = 0; d < state.dense.size(); ++d) {
    dense.push_back(state.dense[d]);
    if (d + 1 < state.dense.size() && state.dense[d + 1].derived()) continue;
    const std::vector<double> edges = edges_of(numbers[raw++], bins);
    for (size_t e = 1; e < edges.size() && edges.size() > 2; ++e)
      dense.push_back({.column = state.dense[d].column, .low = edges[e - 1], .high = edges[e]});
  }
  state.dense = std::move(dense);
  state.index();
}

}  // namespace millrace::data
