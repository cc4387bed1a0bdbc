// A small network for tables: two hidden layers with layer norm.
#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

Model mlp(const std::string& kind, const Settings& /*settings*/, const ModelOptions& options) {
  if (!options.ids.empty())
    fail<InputError>("mlp takes numbers only; the model 'table' takes categories too");
  const int64_t columns = usual_columns(options, kind);
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

}  // namespace

MILLRACE_ARCHITECTURE(mlp){
    .name = "mlp",
    .doc = "two layers with layer norm over the numbers of a table",
    .takes = "table",
    .make = mlp,
};

}  // namespace millrace::nn::models
