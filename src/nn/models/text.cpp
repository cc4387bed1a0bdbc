// Transformers of texts whose sizes a recipe chooses: "gpt" (causal, predicts tokens) and "encoder" (sees
// both sides; classes, or tokens that were masked).
// Attention never looks from one text into another, nor at padding.
#include <millrace/decoding.h>

#include "nn/models/architecture.h"
#include "nn/models/models.h"
#include "nn/models/text_parts.h"
#include "nn/models/transformer_block.h"

namespace millrace::nn::models {
namespace {

class TextTransformer : public Module {
 public:
  TextTransformer(const ModelOptions& o, int64_t length, bool causal, int64_t outputs, double drop_path)
      : causal_(causal),
        classes_(!causal && !o.tokens),
        positions_(parameter("pos", {length, o.width}, init::normal(0, 0.02))),
        tokens_(parameter("tok", {o.vocabulary, o.width}, init::normal(0, 0.02))),
        drop_(make<Dropout>("drop", o.dropout)),
        norm_(make<LayerNorm>("norm", o.width)),
        head_(make<Linear>("head", o.width, outputs, classes_)),
        blocks_(make<TransformerBlocks>("blocks", o, BlockStyle{.drop_path = drop_path, .causal = causal})) {}

  Tensor forward_many(std::span<const Tensor> inputs) override {
    require_text(inputs);
    const Tensor with_mask[] = {drop_(embedding(tokens_, inputs[0]) + places_of_text(positions_, inputs)),
                                mask_of_texts(inputs, causal_)};
    const Tensor all = blocks_(with_mask), x = norm_(classes_ ? all : asked_places(all));
    return head_(classes_ ? mean_of_present(x, inputs.size() > 1 ? &inputs[1] : nullptr) : x);
  }

 private:
  bool causal_, classes_;
  Tensor &positions_, &tokens_;
  Dropout& drop_;
  LayerNorm& norm_;
  Linear& head_;
  TransformerBlocks& blocks_;
};

Model text_transformer(const std::string& kind, const Settings& settings, const ModelOptions& given) {
  const ModelOptions options = sized(given, settings);
  require_heads(options);
  const bool causal = kind == "gpt", tokens = causal || options.tokens;
  const int64_t outputs = tokens ? options.vocabulary : options.classes ? options.classes : 2;
  return model_of_tokens(kind, options,
                         std::make_shared<TextTransformer>(options, text_length(kind, options), causal,
                                                           outputs, settings.number("drop_path")),
                         tokens);
}

}  // namespace

MILLRACE_ARCHITECTURE(gpt){
    .name = "gpt",
    .doc = "causal transformer; predicts the next token",
    .takes = "tokens",
    .settings = {width_setting(), depth_setting(), heads_setting(), dropout_setting(), drop_path_setting()},
    .make = text_transformer,
};

MILLRACE_ARCHITECTURE(encoder){
    .name = "encoder",
    .doc = "transformer that sees both sides; classes, or tokens that were masked",
    .takes = "tokens",
    .settings = {width_setting(), depth_setting(), heads_setting(), dropout_setting(), drop_path_setting()},
    .make = text_transformer,
};

}  // namespace millrace::nn::models
