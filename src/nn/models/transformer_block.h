// The pre-norm block of transformers whose sizes a recipe chooses: texts, pictures.
#pragma once

#include <millrace/nn.h>

#include "nn/models/models.h"

namespace millrace::nn::models {

/// x + attention(norm(x)), then that + mlp(norm(that)); the mlp is four times as wide, with GELU between.
class TransformerBlock : public Module {
 public:
  TransformerBlock(int64_t width, int64_t heads, double dropout, bool causal, double drop_path);

  /// x f32 [batch, length, width], and a mask where one is needed (self_attention() says which shapes).
  Tensor forward_many(std::span<const Tensor> inputs) override;

 private:
  int64_t heads_;
  bool causal_;
  LayerNorm& norm1_;
  Linear &qkv_, &proj_;
  LayerNorm& norm2_;
  Linear &fc1_, &fc2_;
  Dropout& drop_;
  DropPath& path_;
};

/// InputError where model.width cannot be divided among model.heads.
void require_heads(const ModelOptions& options);

}  // namespace millrace::nn::models
