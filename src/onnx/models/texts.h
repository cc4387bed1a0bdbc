// How a model from a file takes texts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/graph.h>
#include <millrace/nn.h>

namespace millrace::onnx {

/// What an input of a file is of a text: its tokens' numbers; where there are tokens and where only padding;
/// of which of two joined texts each token is; its place.
enum class TextRole { tokens, mask, types, positions };

/// Told by their names, as exporters and Hugging Face's models have them ("input_ids", "attention_mask",
/// "token_type_ids", "position_ids"); an only input is of tokens. Nothing where one of them is no [batch,
/// length], or where not exactly one is of tokens.
std::optional<std::vector<TextRole>> text_roles(const std::vector<nn::InputSpec>& inputs);

/// The file's inputs from what models of texts are given: tokens, and where texts are padded also segments
/// (1; 0 where it is padding), each i64 [batch, length]. An empty text is one token of number 0.
std::vector<Tensor> text_inputs(const std::vector<TextRole>& roles, std::span<const Tensor> given);

/// InputError where a table of tokens, which a graph looks up what the input `tokens` gives in, has fewer
/// rows than there are tokens.
void check_vocabulary(const Graph& graph, const std::string& tokens, int64_t vocabulary);

}  // namespace millrace::onnx
