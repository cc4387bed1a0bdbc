#include "nn/models/transformer_block.h"

#include <string>

#include "base/format.h"

namespace millrace::nn::models {
namespace {

class TransformerBlock : public Module {
 public:
  TransformerBlock(const ModelOptions& o, const BlockStyle& style, double drop_path)
      : heads_(o.heads),
        causal_(style.causal),
        norm_behind_(style.norm_behind),
        norm1_(make<LayerNorm>("norm1", o.width, style.epsilon)),
        qkv_(make<Linear>("qkv", o.width, 3 * o.width)),
        proj_(make<Linear>("proj", o.width, o.width)),
        norm2_(make<LayerNorm>("norm2", o.width, style.epsilon)),
        fc1_(make<Linear>("fc1", o.width, style.inner ? style.inner : 4 * o.width)),
        fc2_(make<Linear>("fc2", fc1_.weight.dim(0).size(), o.width)),
        drop_(make<Dropout>("drop", o.dropout)),
        path_(make<DropPath>("path", drop_path)) {}

  Tensor forward_many(std::span<const Tensor> inputs) override {
    const Tensor& x = inputs[0];
    const Tensor mask = inputs.size() > 1 ? inputs[1] : Tensor();
    const auto attended = [&](const Tensor& of) {
      return path_(drop_(proj_(self_attention(qkv_(of), heads_, causal_, 0, mask))));
    };
    const auto transformed = [&](const Tensor& of) { return path_(drop_(fc2_(millrace::gelu(fc1_(of))))); };
    // Not Residual's: the norm stands before the sum or behind it, and attention takes a mask as well.
    if (norm_behind_) {
      const Tensor y = norm1_(x + attended(x));
      return norm2_(y + transformed(y));
    }
    const Tensor y = x + attended(norm1_(x));
    return y + transformed(norm2_(y));
  }

 private:
  int64_t heads_;
  bool causal_, norm_behind_;
  LayerNorm& norm1_;
  Linear &qkv_, &proj_;
  LayerNorm& norm2_;
  Linear &fc1_, &fc2_;
  Dropout& drop_;
  DropPath& path_;
};

}  // namespace

TransformerBlocks::TransformerBlocks(const ModelOptions& options, const BlockStyle& style) {
  for (int64_t i = 0; i < options.depth; ++i)
    blocks_.push_back(child(
        std::to_string(i),
        std::make_shared<TransformerBlock>(options, style, drop_path_of(style.drop_path, i, options.depth))));
}

Tensor TransformerBlocks::forward_many(std::span<const Tensor> inputs) {
  std::vector<Tensor> with_mask(inputs.begin(), inputs.end());
  for (const auto& block : blocks_) with_mask[0] = (*block)(with_mask);
  return with_mask[0];
}

void require_heads(const ModelOptions& options) {
  if (options.heads < 1 || options.width % options.heads != 0)
    fail<InputError>("model.width = {} cannot be divided among model.heads = {}", options.width,
                     options.heads);
}

}  // namespace millrace::nn::models
