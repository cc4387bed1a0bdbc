// Transformers: BERT-like encoders (post-norm: bert_base, minilm) and a GPT-like decoder (pre-norm, causal:
// gpt_mini).
#include <millrace/decoding.h>

#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"
#include "nn/models/transformer_block.h"

namespace millrace::nn::models {
namespace {

struct Sizes {
  int64_t vocabulary, width, depth, heads, longest;
  bool causal;
  int64_t length;  // of the samples
  double drop_path = 0;
};

class Transformer : public Module {
 public:
  Transformer(const Sizes& sizes, int64_t classes)
      : causal_(sizes.causal),
        positions_(parameter("pos", {sizes.longest, sizes.width}, init::normal(0, 0.02))),
        tokens_(make<Embedding>("tok", sizes.vocabulary, sizes.width)),
        norm_(make<LayerNorm>("norm", sizes.width)),
        blocks_(make<TransformerBlocks>(
            "blocks", ModelOptions{.width = sizes.width, .depth = sizes.depth, .heads = sizes.heads},
            BlockStyle{.drop_path = sizes.drop_path, .causal = sizes.causal, .norm_behind = !sizes.causal})),
        head_(make<Linear>("head", sizes.width, classes, !sizes.causal)) {}

  Tensor forward(const Tensor& ids) override {
    const Tensor x = tokens_(ids) + embedded_places(positions_, ids);
    if (causal_) return head_(norm_(asked_places(blocks_(x))));
    return head_(select_index(blocks_(norm_(x)), 1, 0));
  }

 private:
  bool causal_;
  Tensor& positions_;
  Embedding& tokens_;
  LayerNorm& norm_;
  TransformerBlocks& blocks_;
  Linear& head_;
};

Model transformer(const std::string& kind, const Settings& settings, const ModelOptions& options) {
  Sizes sizes{30522, 768, 12, 12, 512, false, 128};
  if (kind == "bert_base_14") sizes.length = 14;
  if (kind == "minilm") sizes = {30522, 384, 6, 12, 512, false, 128};
  if (kind == "gpt_mini") sizes = {256, 384, 6, 6, 256, true, 256};
  sizes.drop_path = settings.number("drop_path");
  if (!options.input.empty()) {
    if (options.input.rank() != 1) fail<InputError>("{} takes samples of shape [length]", kind);
    sizes.length = options.input[0].size();
  }
  const int64_t classes = options.classes ? options.classes : sizes.causal ? sizes.vocabulary : 2;
  return {kind,
          std::make_shared<Transformer>(sizes, classes),
          {{"x0", batch_of({sizes.length}, i64), 0, static_cast<double>(sizes.vocabulary)}},
          sizes.causal ? Task::tokens : Task::classes};
}

Architecture transformer_kind(const char* name, const char* doc) {
  return {
      .name = name, .doc = doc, .takes = "tokens", .settings = {drop_path_setting()}, .make = transformer};
}

}  // namespace

MILLRACE_ARCHITECTURE(bert_base) = transformer_kind("bert_base", "the size of BERT base; classes");

MILLRACE_ARCHITECTURE(bert_base_14) = transformer_kind("bert_base_14", "bert_base for 14 tokens");

MILLRACE_ARCHITECTURE(minilm) = transformer_kind("minilm", "BERT of 6 layers, 384 wide; classes");

MILLRACE_ARCHITECTURE(gpt_mini) = transformer_kind("gpt_mini",
                                                   "causal, 6 layers, 384 wide; predicts the next token");

}  // namespace millrace::nn::models
