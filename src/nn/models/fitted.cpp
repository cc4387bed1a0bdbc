#include "nn/models/fitted.h"

#include <numeric>

#include "nn/models/models.h"

namespace millrace::nn::models {

Tensor table_columns(std::span<const Tensor> inputs, const ModelOptions& options) {
  check_table_inputs(inputs, options.numbers > 0, !options.ids.empty());
  std::vector<Tensor> parts;
  if (options.numbers > 0) parts.push_back(inputs[0]);
  // The columns are the last axis: rows of a query stand before it, too.
  const int columns = inputs.back().rank() - 1;
  for (size_t c = 0; c < options.ids.size(); ++c)
    parts.push_back(one_hot(select_index(inputs.back(), columns, static_cast<int64_t>(c)), options.ids[c]));
  return parts.size() == 1 ? parts[0] : concat(parts, columns);
}

int64_t table_width(const ModelOptions& options) {
  return std::accumulate(options.ids.begin(), options.ids.end(), options.numbers);
}

}  // namespace millrace::nn::models
