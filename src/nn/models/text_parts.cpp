#include "nn/models/text_parts.h"

#include <millrace/decoding.h>

#include "base/format.h"
#include "nn/models/models.h"

namespace millrace::nn::models {

void require_text(std::span<const Tensor> inputs) {
  if (inputs.empty() || inputs.size() > 3 || inputs[0].rank() != 2 || !inputs[0].dim(1).is_static())
    fail<TypeError>("a model of texts takes tokens, segments and positions, each [batch, length]");
}

Tensor mean_of_present(const Tensor& x, const Tensor* segments) {
  if (!segments) return x.mean({1});
  const Dim batch = x.dim(0), length = x.dim(1);
  const Tensor there = cast(*segments > 0, f32);
  const Tensor sum = (x * reshape(there, {batch, length, 1})).sum({1});
  return sum / reshape(maximum(there.sum({1}), 1), {batch, 1});
}

Tensor places_of_text(const Tensor& positions, std::span<const Tensor> inputs) {
  // Positions of packed texts may be no more than the longest one has.
  const Tensor places = embedded_places(positions, inputs[0]);
  return inputs.size() > 2 && !Decoding::current() ? embedding(positions, inputs[2]) : places;
}

Tensor mask_of_texts(std::span<const Tensor> inputs, bool causal) {
  // What is decoded has one text a row, and sees what is in its cache.
  if (Decoding::current()) return {};
  const Dim batch = inputs[0].dim(0), length = inputs[0].dim(1);
  if (inputs.size() > 2)
    return equal(reshape(inputs[1], {batch, 1, length, 1}), reshape(inputs[1], {batch, 1, 1, length}));
  if (inputs.size() > 1 && !causal) return reshape(inputs[1], {batch, 1, 1, length}) > 0;
  return {};
}

int64_t text_length(const std::string& kind, const ModelOptions& options) {
  if (options.input.empty()) return 256;
  if (options.input.rank() != 1) fail<InputError>("{} takes samples of shape [length]", kind);
  return options.input[0].size();
}

Model model_of_tokens(const std::string& kind, const ModelOptions& options, std::shared_ptr<Module> module,
                      bool tokens) {
  return {
      kind,
      std::move(module),
      {{"tokens", batch_of({text_length(kind, options)}, i64), 0, static_cast<double>(options.vocabulary)}},
      tokens ? Task::tokens : Task::classes};
}

}  // namespace millrace::nn::models
