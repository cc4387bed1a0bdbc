// Recurrent models of texts, "lstm" and "gru": embeddings, layers over them, and of each text the state after
// its last token (of both directions), or the mean of what the layers give.
#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/text_parts.h"

namespace millrace::nn::models {
namespace {

template <typename Layer>
class RecurrentText : public Module {
 public:
  RecurrentText(const ModelOptions& o, int64_t embedded, bool bidirectional, bool mean, int64_t outputs)
      : directions_(bidirectional ? 2 : 1),
        mean_(mean),
        emb_(make<Embedding>("emb", o.vocabulary, embedded)),
        rnn_(make<Layer>("rnn", embedded, o.width,
                         RecurrentOptions{.layers = o.depth,
                                          .batch_first = true,
                                          .bidirectional = bidirectional,
                                          .dropout = o.dropout})),
        drop_(make<Dropout>("drop", o.dropout)),
        head_(make<Linear>("head", directions_ * o.width, outputs)) {}

  Tensor forward_many(std::span<const Tensor> inputs) override {
    require_text(inputs);
    const Tensor* segments = inputs.size() > 1 ? &inputs[1] : nullptr;
    const Tensor lengths = segments ? sum(cast(*segments > 0, i64), {1}) : Tensor();
    const Recurrent::Result result = rnn_.run(drop_(emb_(inputs[0])), {}, lengths);
    if (mean_) return head_(drop_(mean_of_present(result.output, segments)));
    // Of the last layer the forward direction, then the reverse one.
    const Tensor& states = result.state[0];
    const int64_t count = states.dim(0).size();
    std::vector<Tensor> ends;
    for (int64_t d = count - directions_; d < count; ++d) ends.push_back(select_index(states, 0, d));
    return head_(drop_(ends.size() == 1 ? ends[0] : concat(ends, 1)));
  }

 private:
  int64_t directions_;
  bool mean_;
  Embedding& emb_;
  Layer& rnn_;
  Dropout& drop_;
  Linear& head_;
};

template <typename Layer>
Model recurrent_text(const std::string& kind, const Settings& settings, const ModelOptions& given) {
  ModelOptions options = sized(given, settings);
  if (options.tokens) fail<InputError>("the model '{}' gives classes, it cannot predict tokens", kind);
  if (given.input.empty()) options.input = {64};
  auto module = std::make_shared<RecurrentText<Layer>>(
      options, settings.integer("embedding"), settings.flag("bidirectional"),
      settings.text("pooling") == "mean", options.classes ? options.classes : 2);
  Model model = model_of_tokens(kind, options, std::move(module), false);
  model.inputs[0].name = "x0";
  return model;
}

std::vector<Setting> recurrent_settings() {
  Setting depth = depth_setting();
  depth.usual = int64_t{1};
  return {width_setting(),
          depth,
          {"embedding", "width of the embeddings of tokens", int64_t{64}, 1, 1 << 16},
          {"bidirectional", "also from the end of a text to its beginning", false},
          {.name = "pooling",
           .doc = "a text is the state after its last token, or the mean of what all give",
           .usual = std::string("last"),
           .choices = {"last", "mean"}},
          dropout_setting()};
}

}  // namespace

MILLRACE_ARCHITECTURE(lstm){
    .name = "lstm",
    .doc = "LSTM layers over tokens; classes",
    .takes = "tokens",
    .settings = recurrent_settings(),
    .make = recurrent_text<LSTM>,
};

MILLRACE_ARCHITECTURE(gru){
    .name = "gru",
    .doc = "GRU layers over tokens; classes",
    .takes = "tokens",
    .settings = recurrent_settings(),
    .make = recurrent_text<GRU>,
};

}  // namespace millrace::nn::models
