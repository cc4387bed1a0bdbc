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
/// `function` and the module, which must stay as it is, are kept.
DecodeModel decode_model(std::shared_ptr<nn::Module> model, DecodeFunction function, int64_t vocabulary,
                         int64_t longest, const CompileOptions& compile);

}  // namespace millrace::optim
