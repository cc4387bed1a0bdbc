// Tokens of an input: the next ones, or those that are masked.
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/format.h"
#include "eval/metric.h"
#include "task/json_text.h"
#include "task/judge_labels.h"
#include "task/output.h"
#include "task/recipe_sections.h"
#include "task/token_input.h"

namespace millrace::task {
namespace {

using Learn = data::TokenOptions::Learn;

class TokensOutput final : public Output {
 public:
  TokensOutput(Section section, const TokenInput& input) : Output(std::move(section)), input_(&input) {
    loss_ = chosen_loss(section_);
  }

  std::string encoding() const override { return "{}"; }
  double ignorance() const override { return std::log(static_cast<double>(width())); }
  int64_t width() const override { return input_->vocabulary(); }
  bool at_places() const override { return true; }
  const Input* from() const override { return input_; }

  std::shared_ptr<const data::Part> part(const Reading& /*reading*/) const override { return nullptr; }

  Tensor loss(const Tensor& logits, const Tensor& targets, bool mean) const override {
    return loss_(logits, maximum(targets, 0), mean);
  }
  Tensor predictions(const Tensor& logits) const override { return softmax(cast(logits, f32), -1); }
  std::string predictions_name() const override { return "probabilities"; }
  eval::Link link() const override { return eval::Link::softmax; }

  void judge(std::span<const float> logits, std::span<const std::byte> targets, int64_t length,
             const std::vector<char>& rows, double bytes, eval::Measurement& into) const override {
    judge_labels(logits, targets, length, width(), rows, bytes, into);
  }

  std::string predicts_nothing() const override {
    if (input_->learns() == Learn::next) return {};
    return "the model has learnt which tokens are masked, and says nothing of a text as it is; it is where "
           "others begin (train.init_from)";
  }
  /// The most probable tokens at the last place that is there.
  Prediction predict(std::span<const float> logits, int64_t top) const override {
    if (input_->learns() != Learn::next) return {};
    std::vector<double> probabilities;
    eval::softmax(logits.last(static_cast<size_t>(width())), probabilities);
    Prediction told;
    std::string list;
    for (const size_t i : most_probable(probabilities, top)) {
      const auto id = static_cast<int32_t>(i);
      const std::string token = json_string(input_->tokenizer().decode({&id, 1}, false));
      told.text += fmt::format("{}{} {:.1f} %", told.text.empty() ? "" : ", ", token, 100 * probabilities[i]);
      list += fmt::format("{}{{\"id\": {}, \"token\": {}, \"probability\": {}}}", list.empty() ? "" : ", ",
                          id, token, json_number(probabilities[i]));
    }
    told.json = {{"next", "[" + list + "]"}};
    return told;
  }
  std::string target_text(std::span<const std::byte> target) const override {
    std::vector<int32_t> ids;
    for (const int64_t id : labels_in(target))
      if (id >= 0) ids.push_back(static_cast<int32_t>(id));
    return input_->tokenizer().decode(ids, false);
  }
  std::string predicted_text(std::span<const float> logits,
                             std::span<const std::byte> target) const override {
    const auto labels = labels_in(target);
    const auto vocabulary = static_cast<size_t>(width());
    std::vector<int32_t> ids;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] < 0) continue;
      const auto place = logits.subspan(i * vocabulary, vocabulary);
      ids.push_back(static_cast<int32_t>(std::max_element(place.begin(), place.end()) - place.begin()));
    }
    return input_->tokenizer().decode(ids, false);
  }

 private:
  const TokenInput* input_;
};

/// The input that a section's `of` names.
const TokenInput& tokens_input(const Section& section, std::span<const std::unique_ptr<Input>> inputs) {
  const std::string &wanted = section.settings.text("of"), key = output_key(section);
  const TokenInput* found = nullptr;
  std::vector<std::string> names;
  for (const auto& input : inputs) {
    const auto* tokens = dynamic_cast<const TokenInput*>(input.get());
    if (!tokens || tokens->learns() == Learn::nothing) {
      if (!wanted.empty() && input->name() == wanted)
        fail<InputError>(
            "{}.of = \"{}\": that input is of kind {}, and tokens are predicted of the kind tokens", key,
            wanted, input->section().kind);
      continue;
    }
    names.push_back(input->name());
    if (wanted.empty() || input->name() == wanted) found = tokens;
  }
  if (names.empty())
    fail<InputError>("{} predicts tokens, but no input is of the kind tokens: set input.kind = \"tokens\"",
                     key);
  if (!found)
    fail<InputError>("{}.of = \"{}\": there is no such input ({})", key, wanted,
                     names[0].empty() ? "the only one has no name: leave this key out"
                                      : fmt::format("inputs of tokens: {}", fmt::join(names, ", ")));
  if (wanted.empty() && names.size() > 1)
    fail<InputError>("{} predicts tokens: of which input? Set {}.of to one of {}", key, key,
                     fmt::join(names, ", "));
  return *found;
}

std::unique_ptr<Output> tokens_output_of(const Section& section,
                                         std::span<const std::unique_ptr<Input>> inputs) {
  return std::make_unique<TokensOutput>(section, tokens_input(section, inputs));
}

void check_tokens_output(const Section& section, const Recipe& recipe) {
  const std::string key = output_key(section);
  if (!section.settings.text("column").empty())
    fail<InputError>("{}.column = \"{}\": tokens are predicted of an input; name it by {}.of", key,
                     section.settings.text("column"), key);
  const std::string prefix = section.name.empty() ? "" : section.name + ".";
  std::string metric;
  for (const std::string& name : recipe.eval.metrics) {
    const eval::MetricKind* const kind =
        name.starts_with(prefix) ? eval::find_metric(name.substr(prefix.size())) : nullptr;
    if (kind && (kind->texts || kind->name == "bits-per-byte")) metric = name;
  }
  if (metric.empty()) return;
  const std::string& wanted = section.settings.text("of");
  for (const Section& input : recipe.inputs)
    if ((wanted.empty() || input.name == wanted) && input.settings.find("masked") &&
        !input.settings.text("masked").empty())
      fail<InputError>("eval.metrics: {} is of models that predict the next token, and {}.masked is set",
                       metric, input_key(input));
}

}  // namespace

MILLRACE_OUTPUT(tokens){
    .name = "tokens",
    .doc = "the next tokens of an input of kind tokens, or its masked ones",
    .settings = {},
    .metrics = {"accuracy", "log-loss", "perplexity"},
    .loss = "cross-entropy",
    .refuses = [](const data::Dataset& /*samples*/, const std::string& column) -> std::string {
      return fmt::format("tokens are predicted of an input, not of the column '{}'", column);
    },
    .recognise = [](const data::Dataset& /*samples*/) -> std::string { return {}; },
    .rank = -1,
    .check = check_tokens_output,
    .learn = [](const Section& section, const Reading& /*reading*/,
                std::span<const std::unique_ptr<Input>> inputs) -> std::unique_ptr<Output> {
      return tokens_output_of(section, inputs);
    },
    .load = [](const Section& section, const std::string& /*encoding*/,
               std::span<const std::unique_ptr<Input>> inputs) -> std::unique_ptr<Output> {
      return tokens_output_of(section, inputs);
    },
};

}  // namespace millrace::task
