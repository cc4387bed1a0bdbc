// What models of texts share. They take tokens i64 [batch, length], and where rows are padded or packed also
// segments i64 [batch, length] (0: padding, else the number of the text within its row) and positions i64
// [batch, length] within the text.
#pragma once

#include <memory>
#include <span>
#include <string>

#include <millrace/nn.h>

namespace millrace::nn::models {

/// TypeError unless the inputs are such.
void require_text(std::span<const Tensor> inputs);
/// The mean of x [batch, length, width] over the places that hold a token.
Tensor mean_of_present(const Tensor& x, const Tensor* segments);
/// The embeddings of the places of a text, as many as it has, or by its positions. TypeError where the model
/// has fewer.
Tensor places_of_text(const Tensor& positions, std::span<const Tensor> inputs);
/// What may be looked at: no other text of a row, no padding. Undefined where everything may; a `causal`
/// model does not look at the padding behind anyway.
Tensor mask_of_texts(std::span<const Tensor> inputs, bool causal);

/// The longest sample; InputError unless it is one of tokens.
int64_t text_length(const std::string& kind, const ModelOptions& options);
Model model_of_tokens(const std::string& kind, const ModelOptions& options, std::shared_ptr<Module> module,
                      bool tokens);

}  // namespace millrace::nn::models
