// A classifier of texts: embeddings of bytes, one LSTM layer, and its last output.
#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

constexpr int64_t vocabulary = 256, kEmbedded = 64, hidden = 128;

class LstmClassifier : public Module {
 public:
  explicit LstmClassifier(int64_t classes)
      : emb_(make<Embedding>("emb", vocabulary, kEmbedded)),
        rnn_(make<LSTM>("rnn", kEmbedded, hidden, RecurrentOptions{.batch_first = true})),
        head_(make<nn::Linear>("head", hidden, classes)) {}
  Tensor forward(const Tensor& ids) override { return head_(select_index(rnn_(emb_(ids)), 1, -1)); }

 private:
  Embedding& emb_;
  LSTM& rnn_;
  Linear& head_;
};

Model lstm(const std::string& kind, const ModelOptions& options) {
  if (!options.input.empty() && options.input.rank() != 1)
    fail<InputError>("{} takes samples of shape [length]", kind);
  const Shape input = options.input.empty() ? Shape{64} : options.input;
  return {kind,
          std::make_shared<LstmClassifier>(options.classes ? options.classes : 2),
          {{"x0", batch_of(input, i64), 0, static_cast<double>(vocabulary)}}};
}

}  // namespace

MILLRACE_ARCHITECTURE(lstm){
    .name = "lstm",
    .doc = "one LSTM layer over bytes; classes",
    .takes = "tokens",
    .make = [](const Settings&, const ModelOptions& options) { return lstm("lstm", options); },
};

}  // namespace millrace::nn::models
