// Models of texts whose sizes a recipe chooses: "gpt" (causal, predicts tokens), "encoder" (sees both sides;
// classes, or tokens that were masked) and "bag" (the mean of embeddings, then one layer: what anything
// larger must beat).
//
// They take tokens i64 [batch, length], and where rows are padded or packed also segments i64 [batch, length]
// (0: padding, else the number of the text within its row) and positions i64 [batch, length] within the text.
// Attention never looks from one text into another, nor at padding.
#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"
#include "nn/models/transformer_block.h"

namespace millrace::nn::models {
namespace {

/// 1 where there is a token, 0 where there is padding: f32.
Tensor present(const Tensor& segments) { return cast(segments > 0, f32); }

/// The mean of x [batch, length, width] over the places that hold a token.
Tensor mean_of_present(const Tensor& x, const Tensor* segments) {
  if (!segments) return x.mean({1});
  const Dim batch = x.dim(0), length = x.dim(1);
  const Tensor there = present(*segments);
  const Tensor sum = (x * reshape(there, {batch, length, 1})).sum({1});
  return sum / reshape(maximum(there.sum({1}), 1), {batch, 1});
}

class TextTransformer : public Module {
 public:
  TextTransformer(const ModelOptions& o, int64_t length, bool causal, int64_t outputs, double drop_path)
      : causal_(causal),
        classes_(!causal && !o.tokens),
        positions_(parameter("pos", {length, o.width}, init::normal(0, 0.02))),
        tokens_(parameter("tok", {o.vocabulary, o.width}, init::normal(0, 0.02))),
        drop_(make<Dropout>("drop", o.dropout)),
        norm_(make<LayerNorm>("norm", o.width)),
        head_(make<Linear>("head", o.width, outputs, classes_)) {
    for (int64_t i = 0; i < o.depth; ++i)
      blocks_.push_back(child(fmt::format("blocks.{}", i),
                              std::make_shared<TransformerBlock>(o.width, o.heads, o.dropout, causal,
                                                                 drop_path_of(drop_path, i, o.depth))));
  }

  Tensor forward_many(std::span<const Tensor> inputs) override {
    if (inputs.empty() || inputs.size() > 3 || inputs[0].rank() != 2 || !inputs[0].dim(1).is_static())
      fail<TypeError>("a model of texts takes tokens, segments and positions, each [batch, length]");
    const Dim batch = inputs[0].dim(0), length = inputs[0].dim(1);
    if (length.size() > positions_.dim(0).size())
      fail<TypeError>("the model takes at most {} tokens, not {}", positions_.dim(0).str(), length.str());
    const Tensor places =
        inputs.size() > 2 ? embedding(positions_, inputs[2]) : slice(positions_, 0, 0, length.size());
    Tensor x = drop_(embedding(tokens_, inputs[0]) + places);
    // Padding stands behind the tokens of its row, where a causal model does not look anyway.
    std::vector<Tensor> with_mask = {x};
    if (inputs.size() > 2)
      with_mask.push_back(
          equal(reshape(inputs[1], {batch, 1, length, 1}), reshape(inputs[1], {batch, 1, 1, length})));
    else if (inputs.size() > 1 && !causal_)
      with_mask.push_back(reshape(inputs[1], {batch, 1, 1, length}) > 0);
    for (const auto& block : blocks_) with_mask[0] = (*block)(with_mask);
    x = norm_(with_mask[0]);
    return head_(classes_ ? mean_of_present(x, inputs.size() > 1 ? &inputs[1] : nullptr) : x);
  }

 private:
  bool causal_, classes_;
  Tensor &positions_, &tokens_;
  Dropout& drop_;
  LayerNorm& norm_;
  Linear& head_;
  std::vector<std::shared_ptr<TransformerBlock>> blocks_;
};

class Bag : public Module {
 public:
  Bag(const ModelOptions& o, int64_t classes)
      : tokens_(parameter("tok", {o.vocabulary, o.width}, init::normal(0, 0.1))),
        drop_(make<Dropout>("drop", o.dropout)),
        head_(make<Linear>("head", o.width, classes)) {}
  Tensor forward_many(std::span<const Tensor> inputs) override {
    return head_(
        drop_(mean_of_present(embedding(tokens_, inputs[0]), inputs.size() > 1 ? &inputs[1] : nullptr)));
  }

 private:
  Tensor& tokens_;
  Dropout& drop_;
  Linear& head_;
};

int64_t length_of(const std::string& kind, const ModelOptions& options) {
  if (options.input.empty()) return 256;
  if (options.input.rank() != 1) fail<InputError>("{} takes samples of shape [length]", kind);
  return options.input[0].size();
}

Model of_tokens(const std::string& kind, const ModelOptions& options, std::shared_ptr<Module> module,
                bool tokens) {
  return {kind,
          std::move(module),
          {{"tokens", batch_of({length_of(kind, options)}, i64), 0, static_cast<double>(options.vocabulary)}},
          tokens ? Task::tokens : Task::classes};
}

Model text_transformer(const std::string& kind, const Settings& settings, const ModelOptions& given) {
  const ModelOptions options = sized(given, settings);
  check_heads(options);
  const bool causal = kind == "gpt", tokens = causal || options.tokens;
  const int64_t outputs = tokens ? options.vocabulary : options.classes ? options.classes : 2;
  return of_tokens(kind, options,
                   std::make_shared<TextTransformer>(options, length_of(kind, options), causal, outputs,
                                                     settings.number("drop_path")),
                   tokens);
}

Model bag(const std::string& kind, const ModelOptions& options) {
  if (options.tokens) fail<InputError>("the model 'bag' gives classes, it cannot predict tokens");
  return of_tokens(kind, options, std::make_shared<Bag>(options, options.classes ? options.classes : 2),
                   false);
}

}  // namespace

MILLRACE_ARCHITECTURE(gpt){
    .name = "gpt",
    .doc = "causal transformer; predicts the next token",
    .takes = "tokens",
    .settings = {width_setting(), depth_setting(), heads_setting(), dropout_setting(), drop_path_setting()},
    .make = [](const Settings& settings,
               const ModelOptions& options) { return text_transformer("gpt", settings, options); },
};

MILLRACE_ARCHITECTURE(encoder){
    .name = "encoder",
    .doc = "transformer that sees both sides; classes, or tokens that were masked",
    .takes = "tokens",
    .settings = {width_setting(), depth_setting(), heads_setting(), dropout_setting(), drop_path_setting()},
    .make = [](const Settings& settings,
               const ModelOptions& options) { return text_transformer("encoder", settings, options); },
};

MILLRACE_ARCHITECTURE(bag){
    .name = "bag",
    .doc = "the mean of embeddings, then one layer; classes",
    .takes = "tokens",
    .settings = {width_setting(), dropout_setting()},
    .make = [](const Settings& settings,
               const ModelOptions& options) { return bag("bag", sized(options, settings)); },
};

}  // namespace millrace::nn::models
