// "bag": the mean of the vectors of a text's tokens, and of its runs of up to `ngrams` tokens, then one
// layer: what anything larger must beat. Runs have their vectors in `ngram_rows` rows, by a hash, as in
// fastText (Joulin et al., arXiv 1607.01759).
#include <algorithm>
#include <memory>
#include <vector>

#include "nn/models/architecture.h"
#include "nn/models/text_parts.h"

namespace millrace::nn::models {
namespace {

class Bag : public Module {
 public:
  Bag(const ModelOptions& o, int64_t ngrams, int64_t ngram_rows)
      : ngrams_(ngrams),
        ngram_rows_(ngram_rows),
        tokens_(parameter("tok", {o.vocabulary, o.width}, init::normal(0, 0.1))),
        drop_(make<Dropout>("drop", o.dropout)),
        head_(make<Linear>("head", o.width, o.classes ? o.classes : 2)) {
    // Near 0, as what training never shows says nothing.
    if (ngrams > 1) runs_ = &parameter("ngrams", {ngram_rows, o.width}, init::normal(0, 0.01));
  }

  Tensor forward_many(std::span<const Tensor> inputs) override {
    require_text(inputs);
    const Tensor& ids = inputs[0];
    const Tensor* segments = inputs.size() > 1 ? &inputs[1] : nullptr;
    const Tensor vectors = embedding(tokens_, ids);
    const int64_t longest = std::min(ngrams_, ids.dim(1).size());
    if (longest < 2) return head_(drop_(mean_of_present(vectors, segments)));
    const Runs runs = runs_of(ids, segments, longest);
    const Tensor all[] = {vectors, embedding(*runs_, runs.rows)};
    return head_(drop_(mean_of_present(concat(all, 1), segments ? &runs.segments : nullptr)));
  }

 private:
  struct Runs {
    Tensor rows;      // of all runs, i64 [batch, runs]
    Tensor segments;  // of the tokens and then the runs: 0 where a run is not within one text
  };

  /// All runs of 2 to `longest` tokens. The hash of a run is a polynomial of its tokens modulo a prime, so
  /// that each comes from the one of the run without its last token; products stay below 2^62.
  Runs runs_of(const Tensor& ids, const Tensor* segments, int64_t longest) const {
    constexpr int64_t prime = 2147483647, base = 1103515245;
    const int64_t length = ids.dim(1).size();
    std::vector<Tensor> rows, present;
    if (segments) present.push_back(*segments);
    Tensor hash = ids + 1;
    for (int64_t n = 2; n <= longest; ++n) {
      const int64_t runs = length - n + 1;
      hash = remainder(slice(hash, 1, 0, runs) * base + slice(ids, 1, n - 1, length) + 1, prime);
      rows.push_back(remainder(hash, ngram_rows_));
      if (!segments) continue;
      const Tensor first = slice(*segments, 1, 0, runs);
      present.push_back(millrace::where(equal(first, slice(*segments, 1, n - 1, length)), first, 0));
    }
    return {concat(rows, 1), segments ? concat(present, 1) : Tensor()};
  }

  static Tensor remainder(const Tensor& x, int64_t divisor) { return x - x / divisor * divisor; }

  int64_t ngrams_, ngram_rows_;
  Tensor& tokens_;
  Dropout& drop_;
  Linear& head_;
  Tensor* runs_ = nullptr;
};

}  // namespace

MILLRACE_ARCHITECTURE(bag){
    .name = "bag",
    .doc = "the mean of embeddings of tokens, and of runs of tokens, then one layer; classes",
    .takes = "tokens",
    .settings = {width_setting(),
                 {"ngrams", "runs of up to so many tokens have vectors of their own, too", int64_t{1}, 1, 32},
                 {"ngram_rows", "rows that those vectors share, by a hash", int64_t{1} << 17, 2, 1 << 28},
                 dropout_setting()},
    .make =
        [](const std::string& kind, const Settings& settings, const ModelOptions& given) {
          const ModelOptions options = sized(given, settings);
          if (options.tokens) fail<InputError>("the model 'bag' gives classes, it cannot predict tokens");
          return model_of_tokens(
              kind, options,
              std::make_shared<Bag>(options, settings.integer("ngrams"), settings.integer("ngram_rows")),
              false);
        },
};

}  // namespace millrace::nn::models
