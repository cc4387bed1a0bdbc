// Transformers: BERT-like encoders (post-norm: bert_base, minilm) and a GPT-like decoder (pre-norm, causal:
// gpt_mini).
#include <millrace/decoding.h>

#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

class EncoderBlock : public Module {
 public:
  EncoderBlock(int64_t width, int64_t heads, bool causal, double drop_path)
      : heads_(heads),
        causal_(causal),
        qkv_(make<Linear>("qkv", width, 3 * width)),
        proj_(make<Linear>("proj", width, width)),
        fc1_(make<Linear>("fc1", width, 4 * width)),
        fc2_(make<Linear>("fc2", 4 * width, width)),
        norm1_(make<LayerNorm>("norm1", width)),
        norm2_(make<LayerNorm>("norm2", width)),
        path_(make<DropPath>("path", drop_path)) {}

  Tensor forward(const Tensor& x) override {
    if (causal_) {
      const Tensor y = x + path_(attend(norm1_(x)));
      return y + path_(transform(norm2_(y)));
    }
    const Tensor y = norm1_(x + path_(attend(x)));
    return norm2_(y + path_(transform(y)));
  }

 private:
  Tensor attend(const Tensor& x) { return proj_(self_attention(qkv_(x), heads_, causal_)); }
  Tensor transform(const Tensor& x) { return fc2_(millrace::gelu(fc1_(x))); }

  int64_t heads_;
  bool causal_;
  Linear &qkv_, &proj_, &fc1_, &fc2_;
  LayerNorm &norm1_, &norm2_;
  DropPath& path_;
};

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
        blocks_(make<Sequential>("blocks")),
        head_(make<Linear>("head", sizes.width, classes, !sizes.causal)) {
    for (int64_t i = 0; i < sizes.depth; ++i)
      blocks_.append(std::make_shared<EncoderBlock>(sizes.width, sizes.heads, sizes.causal,
                                                    drop_path_of(sizes.drop_path, i, sizes.depth)));
  }

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
  Sequential& blocks_;
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
  const auto make = [kind = std::string(name)](const Settings& settings, const ModelOptions& options) {
    return transformer(kind, settings, options);
  };
  return {.name = name, .doc = doc, .takes = "tokens", .settings = {drop_path_setting()}, .make = make};
}

}  // namespace

MILLRACE_ARCHITECTURE(bert_base) = transformer_kind("bert_base", "the size of BERT base; classes");

MILLRACE_ARCHITECTURE(bert_base_14) = transformer_kind("bert_base_14", "bert_base for 14 tokens");

MILLRACE_ARCHITECTURE(minilm) = transformer_kind("minilm", "BERT of 6 layers, 384 wide; classes");

MILLRACE_ARCHITECTURE(gpt_mini) = transformer_kind("gpt_mini",
                                                   "causal, 6 layers, 384 wide; predicts the next token");

}  // namespace millrace::nn::models
