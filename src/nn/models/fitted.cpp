#include "nn/models/fitted.h"

#include <numeric>

#include "base/format.h"
#include "nn/models/models.h"

namespace millrace::nn::models {

Tensor table_columns(std::span<const Tensor> inputs, const ModelOptions& options) {
  const size_t wanted = (options.numbers > 0 ? 1 : 0) + (options.ids.empty() ? 0 : 1);
  if (inputs.size() != wanted)
    fail<TypeError>("the model of this table takes {} inputs, {} are given", wanted, inputs.size());
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

std::vector<InputSpec> table_inputs(const ModelOptions& options, const std::string& kind) {
  if (options.numbers < 0) fail<InputError>("a table cannot have {} columns of numbers", options.numbers);
  std::vector<InputSpec> inputs;
  if (options.numbers > 0) inputs.push_back({"numbers", batch_of({options.numbers})});
  if (options.ids.empty() && inputs.empty())
    fail<InputError>("{} needs columns of numbers or categories, and the table has none", kind);
  if (options.ids.empty()) return inputs;
  const int64_t least = *std::min_element(options.ids.begin(), options.ids.end());
  if (least < 1) fail<InputError>("each column of categories of a table needs ids, not {} of them", least);
  inputs.push_back(
      {"ids", batch_of({static_cast<int64_t>(options.ids.size())}, i64), 0, static_cast<double>(least)});
  return inputs;
}

ModelOptions fitted_options(ModelOptions options, const std::string& kind) {
  if (options.classes == 0) options.classes = 2;
  if (options.numbers == 0 && options.ids.empty()) options.numbers = usual_columns(options, kind);
  return options;
}

}  // namespace millrace::nn::models
