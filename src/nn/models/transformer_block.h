// The blocks of transformers.
#pragma once

#include <memory>
#include <vector>

#include <millrace/nn.h>

#include "nn/models/models.h"

namespace millrace::nn::models {

struct BlockStyle {
  double drop_path = 0;  // of the last block
  bool causal = false;
  bool norm_behind = false;  // norms are behind the sums, as in BERT, not in front of what is added
  int64_t inner = 0;         // width of the mlp; 0: four times the width
  double epsilon = 1e-5;     // of the norms
};

/// Blocks one behind the other, children "0", "1" …, by width, depth, heads and dropout of the options. Each
/// is x + attention(norm(x)), then that + mlp(norm(that)), or norm(x + attention(x)), then norm(that +
/// mlp(that)), with GELU in the mlp.
class TransformerBlocks : public Module {
 public:
  TransformerBlocks(const ModelOptions& options, const BlockStyle& style);

  /// x f32 [batch, length, width], and a mask (self_attention() says which shapes), which may be undefined.
  Tensor forward_many(std::span<const Tensor> inputs) override;

 private:
  std::vector<std::shared_ptr<Module>> blocks_;
};

/// InputError where model.width cannot be divided among model.heads.
void require_heads(const ModelOptions& options);

}  // namespace millrace::nn::models
