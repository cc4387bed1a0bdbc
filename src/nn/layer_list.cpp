// Models from lines: "conv 32 3", "batch-norm", "relu", "max-pool 2", "flatten", "linear 10".
#include <string_view>

#include "base/format.h"
#include "nn/layers/layer.h"
#include "nn/models/models.h"

namespace millrace::nn {

Model make_layers(const std::vector<std::string>& lines, const Shape& input, DType dtype) {
  if (lines.empty()) fail<InputError>("a model needs at least one layer");
  auto layers = std::make_shared<Sequential>();
  const Type type = models::batch_of(input, dtype);
  Tensor x = Tensor::symbol("input", type);
  for (const std::string& text : lines) {
    const LayerLine line = layers::parse_line(text);
    try {
      const auto layer = layers::kind_of(line).make(line, x);
      layers->append(layer);
      // Evaluation mode: the shapes of training need the size of the batch.
      layer->eval();
      x = (*layer)(x);
      layer->train();
    } catch (const TypeError& error) {
      line.error(error.what());
    } catch (const InputError& error) {  // of the layer itself; those of the line name it already
      if (std::string_view(error.what()).starts_with("layer '")) throw;
      line.error(error.what());
    }
  }
  return {"layers", layers, {{"x0", type}}};
}

}  // namespace millrace::nn
