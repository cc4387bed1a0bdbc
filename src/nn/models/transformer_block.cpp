#include "nn/models/transformer_block.h"

#include "base/format.h"

namespace millrace::nn::models {

TransformerBlock::TransformerBlock(int64_t width, int64_t heads, double dropout, bool causal,
                                   double drop_path)
    : heads_(heads),
      causal_(causal),
      norm1_(make<LayerNorm>("norm1", width)),
      qkv_(make<Linear>("qkv", width, 3 * width)),
      proj_(make<Linear>("proj", width, width)),
      norm2_(make<LayerNorm>("norm2", width)),
      fc1_(make<Linear>("fc1", width, 4 * width)),
      fc2_(make<Linear>("fc2", 4 * width, width)),
      drop_(make<Dropout>("drop", dropout)),
      path_(make<DropPath>("path", drop_path)) {}

Tensor TransformerBlock::forward_many(std::span<const Tensor> inputs) {
  const Tensor& x = inputs[0];
  const Tensor mask = inputs.size() > 1 ? inputs[1] : Tensor();
  const Tensor y = x + path_(drop_(proj_(self_attention(qkv_(norm1_(x)), heads_, causal_, 0, mask))));
  return y + path_(drop_(fc2_(millrace::gelu(fc1_(norm2_(y))))));
}

void require_heads(const ModelOptions& options) {
  if (options.heads < 1 || options.width % options.heads != 0)
    fail<InputError>("model.width = {} cannot be divided among model.heads = {}", options.width,
                     options.heads);
}

}  // namespace millrace::nn::models
