// BERT (Devlin et al., arXiv 1810.04805) in its very form, so that its weights fit: the sum of the embeddings
// of tokens, places and types, normalised; blocks that normalise behind what they add; and a sentence as the
// mean of its tokens or by its first one.
#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/text_parts.h"
#include "nn/models/transformer_block.h"

namespace millrace::nn::models {
namespace {

struct BertSizes {
  int64_t intermediate, positions, types;
  double epsilon;
  std::string pooling;
  bool normalise;
};

class Bert : public Module {
 public:
  Bert(const ModelOptions& o, const BertSizes& sizes, int64_t outputs)
      : sizes_(sizes),
        tokens_(parameter("tok", {o.vocabulary, o.width}, init::normal(0, 0.02))),
        positions_(parameter("pos", {sizes.positions, o.width}, init::normal(0, 0.02))),
        types_(parameter("types", {sizes.types, o.width}, init::normal(0, 0.02))),
        norm_(make<LayerNorm>("norm", o.width, sizes.epsilon)),
        drop_(make<Dropout>("drop", o.dropout)),
        blocks_(make<TransformerBlocks>(
            "blocks", o,
            BlockStyle{.norm_behind = true, .inner = sizes.intermediate, .epsilon = sizes.epsilon})) {
    if (o.tokens) {
      transform_ = &make<Linear>("transform", o.width, o.width);
      transform_norm_ = &make<LayerNorm>("transform_norm", o.width, sizes.epsilon);
      token_bias_ = &parameter("token_bias", {o.vocabulary}, init::constant(0));
      return;
    }
    if (sizes.pooling == "pooler") pooler_ = &make<Linear>("pooler", o.width, o.width);
    head_ = &make<Linear>("head", o.width, outputs);
  }

  Tensor forward_many(std::span<const Tensor> inputs) override {
    require_text(inputs);
    // Of one text all tokens are of the first type.
    const Tensor places = places_of_text(positions_, inputs) + select_index(types_, 0, 0);
    const Tensor with_mask[] = {drop_(norm_(embedding(tokens_, inputs[0]) + places)),
                                mask_of_texts(inputs, false)};
    const Tensor x = blocks_(with_mask);
    // The embeddings of the tokens tell them apart, too.
    if (transform_)
      return linear((*transform_norm_)(millrace::gelu((*transform_)(x))), tokens_, *token_bias_);
    return (*head_)(drop_(sentence(x, inputs.size() > 1 ? &inputs[1] : nullptr)));
  }

 private:
  Tensor sentence(const Tensor& x, const Tensor* segments) {
    Tensor one = sizes_.pooling == "mean" ? mean_of_present(x, segments) : select_index(x, 1, 0);
    if (pooler_) one = millrace::tanh((*pooler_)(one));
    if (!sizes_.normalise) return one;
    return one / sqrt(maximum((one * one).sum({1}, true), 1e-24));
  }

  BertSizes sizes_;
  Tensor &tokens_, &positions_, &types_;
  LayerNorm& norm_;
  Dropout& drop_;
  TransformerBlocks& blocks_;
  Linear *pooler_ = nullptr, *head_ = nullptr, *transform_ = nullptr;
  LayerNorm* transform_norm_ = nullptr;
  Tensor* token_bias_ = nullptr;
};

Model bert(const std::string& kind, const Settings& settings, const ModelOptions& given) {
  const ModelOptions options = sized(given, settings);
  require_heads(options);
  const BertSizes sizes = {settings.integer("intermediate"), settings.integer("positions"),
                           settings.integer("types"),        settings.number("epsilon"),
                           settings.text("pooling"),         settings.flag("normalise")};
  if (const int64_t length = text_length(kind, options); length > sizes.positions)
    fail<InputError>("model.positions = {}: texts of input.length = {} have more places", sizes.positions,
                     length);
  return model_of_tokens(kind, options,
                         std::make_shared<Bert>(options, sizes, options.classes ? options.classes : 2),
                         options.tokens);
}

/// Hugging Face's names.
const std::vector<std::string> hugging_face = {
    "embeddings.word_embeddings.weight tok",
    "embeddings.position_embeddings.weight pos",
    "embeddings.token_type_embeddings.weight types",
    "embeddings.LayerNorm.gamma norm.weight",
    "embeddings.LayerNorm.beta norm.bias",
    "embeddings.LayerNorm.* norm.*",
    "encoder.layer.*.attention.self.query.* blocks.*.qkv.* 1/3",
    "encoder.layer.*.attention.self.key.* blocks.*.qkv.* 2/3",
    "encoder.layer.*.attention.self.value.* blocks.*.qkv.* 3/3",
    "encoder.layer.*.attention.output.dense.* blocks.*.proj.*",
    "encoder.layer.*.attention.output.LayerNorm.gamma blocks.*.norm1.weight",
    "encoder.layer.*.attention.output.LayerNorm.beta blocks.*.norm1.bias",
    "encoder.layer.*.attention.output.LayerNorm.* blocks.*.norm1.*",
    "encoder.layer.*.intermediate.dense.* blocks.*.fc1.*",
    "encoder.layer.*.output.dense.* blocks.*.fc2.*",
    "encoder.layer.*.output.LayerNorm.gamma blocks.*.norm2.weight",
    "encoder.layer.*.output.LayerNorm.beta blocks.*.norm2.bias",
    "encoder.layer.*.output.LayerNorm.* blocks.*.norm2.*",
    "pooler.dense.* pooler.*",
    "classifier.* head.*",
    "cls.predictions.transform.dense.* transform.*",
    "cls.predictions.transform.LayerNorm.* transform_norm.*",
    "cls.predictions.bias token_bias",
};

}  // namespace

MILLRACE_ARCHITECTURE(bert){
    .name = "bert",
    .doc = "BERT, which takes the weights of Hugging Face's; classes, or tokens that were masked",
    .takes = "tokens",
    .settings = {width_setting(),
                 depth_setting(),
                 heads_setting(),
                 {"intermediate", "width between the two layers of a block; 0: four times the width",
                  int64_t{0}, 0, 1 << 18},
                 {"positions", "most tokens of a text that the weights know places of", int64_t{512}, 1,
                  1 << 20},
                 {"types", "types of tokens that the weights know; the first is used", int64_t{2}, 1,
                  1 << 10},
                 {"epsilon", "of layer norm", 1e-12, 0, 1},
                 {.name = "pooling",
                  .doc = "a text is the mean of its tokens, the first one, or BERT's pooler of that",
                  .usual = std::string("mean"),
                  .choices = {"mean", "first", "pooler"}},
                 {"normalise", "a text's vector is made 1 long before the head", false},
                 dropout_setting()},
    .foreign = hugging_face,
    .make = bert,
};

}  // namespace millrace::nn::models
