// The graph of a decoding step of a model.
#pragma once

#include <functional>

#include <millrace/decoder.h>
#include <millrace/nn.h>

namespace millrace::optim {

/// Logits [rows, tokens or 1, vocabulary] of new tokens at their positions, both i64 [rows, tokens].
using DecodeFunction =
    std::function<Tensor(nn::Module& model, const Tensor& tokens, const Tensor& positions)>;

/// As DecodeModel::graph describes it, weights being parameters, then buffers. `narrow`: matrices among the
/// parameters, and the caches, are stored as bf16. InputError where the model is none that looks back alone.
Graph build_decode_graph(nn::Module& model, const DecodeShape& shape, const DecodeFunction& function,
                         bool narrow);

/// The model for a decoder, in "fp32" or "bf16" (CompileOptions::precision), with the weights it has now.
/// `function` and the module, which must stay as it is, are kept. Of a model that does not know of a Decoding
/// (one from a file) the graph of a whole text is taken, and its weights are copied.
DecodeModel decode_model(std::shared_ptr<nn::Module> model, DecodeFunction function, int64_t vocabulary,
                         int64_t longest, const CompileOptions& compile);

/// The same of a graph that was written for whole texts, and the weights that are its inputs behind the
/// tokens (optim/token_graph.h says what it must be like). `shorter`: the same for some shorter texts, where
/// they may be of any length.
DecodeModel decode_model(const Graph& whole, const std::vector<Graph>& shorter,
                         const std::vector<Array>& weights, const CompileOptions& compile);

}  // namespace millrace::optim
