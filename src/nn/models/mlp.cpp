// A small network for tables: two hidden layers with layer norm.
#include "base/format.h"
#include "nn/models/models.h"

namespace millrace::nn::models {

Model mlp(const std::string& kind, const ModelOptions& options) {
  if (!options.input.empty() && options.input.rank() != 1)
    fail<InputError>("{} takes samples of shape [columns]", kind);
  const int64_t columns = options.input.empty() ? 14 : options.input[0].size();
  auto layers = std::make_shared<Sequential>();
  int64_t in = columns;
  for (const int64_t width : {128, 64}) {
    layers->append(std::make_shared<Linear>(in, width));
    layers->append(nn::relu());
    layers->append(std::make_shared<LayerNorm>(width));
    in = width;
  }
  layers->append(std::make_shared<Linear>(in, options.classes ? options.classes : 2));
  return {kind, layers, {{"x0", batch_of({columns})}}};
}

}  // namespace millrace::nn::models
