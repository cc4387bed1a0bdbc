// Models from lines: "conv 32 3", "batch-norm", "relu", "max-pool 2", "flatten", "linear 10".
#include "base/format.h"
#include "base/word_settings.h"
#include "base/words.h"
#include "nn/layers/layer.h"
#include "nn/models/models.h"

namespace millrace::nn {
namespace {

/// Appends the layer of a line, and gives what it makes of x.
Tensor append_layer(Sequential& layers, const std::string& text, const Tensor& x) {
  const std::vector<std::string> words = split_words(text);
  const std::string name = words.empty() ? "" : words[0];
  const LayerKind* const kind = layers::kinds().find(name);
  if (!kind)
    fail<InputError>("layer \"{}\": there is no layer '{}'{}", text, name,
                     did_you_mean_or_list(name, layers::kinds().names()));
  const Settings settings = parse_words("layer", text, kind->settings);
  const auto named = [&](const Error& error) {
    return InputError(fmt::format("layer \"{}\": {}", text, error.what()));
  };
  try {
    const std::shared_ptr<Module> layer = kind->make(settings, x);
    layers.append(layer);
    // Evaluation mode: the shapes of training need the size of the batch.
    layer->eval();
    const Tensor y = (*layer)(x);
    layer->train();
    return y;
  } catch (const TypeError& error) {
    throw named(error);
  } catch (const InputError& error) {
    throw named(error);
  }
}

}  // namespace

Model make_layers(const std::vector<std::string>& lines, const Shape& input, DType dtype) {
  if (lines.empty()) fail<InputError>("a model needs at least one layer");
  auto layers = std::make_shared<Sequential>();
  const Type type = models::batch_of(input, dtype);
  Tensor x = Tensor::symbol("input", type);
  for (const std::string& text : lines) x = append_layer(*layers, text, x);
  return {"layers", layers, {{"x0", type}}};
}

}  // namespace millrace::nn
