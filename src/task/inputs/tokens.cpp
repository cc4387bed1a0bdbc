// Rows of tokens of a corpus, whose next or masked tokens are predicted.
#include <algorithm>
#include <memory>

#include "base/format.h"
#include "data/encode/text_column.h"
#include "data/feed/sequences/window_stream.h"
#include "data/table/labels.h"
#include "task/token_input.h"

namespace millrace::task {
namespace {

using Learn = data::TokenOptions::Learn;
using Layout = data::TokenOptions::Layout;

SequenceLayout token_layout(const Section& section) {
  return SequenceLayout::parse(section.settings.text("sequences"), input_key(section) + ".sequences",
                               {"windows", "packed", "padded", "buckets"},
                               section.settings.integer("length"));
}

class TokensInput final : public TokenInput {
 public:
  using TokenInput::TokenInput;
  std::vector<std::string> architectures() const override {
    return {learns() == Learn::masked ? "encoder" : "gpt"};
  }
  Learn learns() const override { return settings().text("masked").empty() ? Learn::next : Learn::masked; }
  bool cuts() const override { return layout().layout != Layout::padded; }
  double bytes_per_target(const data::Part& part) const override {
    const data::Texts& texts = dynamic_cast<const data::TokenPart&>(part).texts();
    if (learns() != Learn::next || texts.tokens.size() == 0) return 0;
    return static_cast<double>(texts.bytes) / static_cast<double>(texts.tokens.size());
  }

 protected:
  std::string separator() const override { return settings().text("separator"); }
  void masking(data::TokenOptions& options) const override {
    if (learns() != Learn::masked) return;
    options.spans = data::SpanOptions::parse(settings().text("masked"));
    options.mask = mask_of(tokenizer());
  }
};

void check_masked(const Section& section) {
  const std::string& masked = section.settings.text("masked");
  if (masked.empty()) return;
  try {
    (void)data::SpanOptions::parse(masked);
  } catch (const InputError& error) {
    fail<InputError>("{}.masked = \"{}\": {}", input_key(section), masked, error.what());
  }
  if (section.settings.integer("length") < 2)
    fail<InputError>("{}.masked = \"{}\": of rows of length = 1 nothing can be masked", input_key(section),
                     masked);
}

void check_tokens(const Section& section, const Recipe& recipe) {
  const std::string key = input_key(section);
  const SequenceLayout layout = token_layout(section);
  check_masked(section);
  const std::string kind = model_kind_of(section, recipe);
  const bool masked = !section.settings.text("masked").empty();
  if (kind == "bag" || kind == "lstm" || kind == "gru")
    fail<InputError>("model.kind = \"{}\" gives classes, it cannot predict tokens: take gpt", kind);
  if ((kind == "encoder" || kind == "bert") && !masked)
    fail<InputError>(
        "model.kind = \"{}\" sees the tokens on both sides, so the next one is no task for it: set {}.masked "
        "= \"0.15 3\", or take gpt",
        kind, key);
  if (kind == "gpt" && masked)
    fail<InputError>(
        "model.kind = \"gpt\" sees only the tokens before, and {}.masked = \"{}\" asks for masked ones: take "
        "encoder or bert, or leave {}.masked empty",
        key, section.settings.text("masked"), key);
  if (layout.layout != Layout::windows && !kind.empty() && kind != "gpt" && kind != "encoder" &&
      kind != "bert" && kind != "onnx")
    fail<InputError>(
        "model.kind = \"{}\" takes rows without padding only ({}.sequences = \"windows\"); gpt, encoder, "
        "bert and ONNX files take others",
        kind, key);
}

std::unique_ptr<Input> tokens_of(const Section& section, TokenEncoding known, bool loaded) {
  if (!loaded && !section.settings.text("masked").empty()) {
    const auto tokenizer = data::open_tokenizer(expand(section.settings.text("tokenizer")));
    known.vocabulary = std::max<int64_t>(tokenizer->size(), mask_of(*tokenizer) + 1);
  }
  return std::make_unique<TokensInput>(section, token_layout(section), std::move(known), loaded);
}

std::unique_ptr<data::Stream> token_stream(const Section& section, std::unique_ptr<data::Stream> samples) {
  if (token_layout(section).layout != Layout::windows) return samples;
  data::WindowOptions options;
  options.tokenizer = data::open_tokenizer(expand(section.settings.text("tokenizer")));
  options.column = [section](const data::Dataset& sample) { return text_column(section, sample, {}); };
  options.separator = section.settings.text("separator");
  options.length = section.settings.integer("length");
  options.behind = section.settings.text("masked").empty() ? 1 : 0;
  return data::window_stream(std::move(samples), std::move(options));
}

}  // namespace

MILLRACE_INPUT(tokens){
    .name = "tokens",
    .doc = "rows of tokens of a corpus, to predict the next token or masked ones",
    .unit = "rows",
    .targets = "tokens",
    .settings =
        [] {
          std::vector<Setting> settings = token_settings();
          settings.push_back(
              {"sequences",
               "\"windows\" over all texts joined, others each epoch; \"packed\": several whole "
               "texts in a row; \"padded\": a text a row; \"buckets 4\": the same, padded to 4 "
               "lengths chosen by the data, or \"buckets 32 64 128\"",
               std::string("windows")});
          settings.push_back({"separator", "put behind each text", std::string("\n")});
          settings.push_back(
              {"masked",
               "\"0.15 3\": that share of the tokens, in spans of 3 on average, is masked and to be "
               "predicted (by a model that sees both sides); empty: the next token is",
               std::string()});
          return settings;
        }(),
    .recognise = [](const data::Dataset& samples,
                    const std::vector<std::string>& taken) -> std::vector<std::string> {
      if (!taken.empty() || data::find_label(samples)) return {};
      const std::string column = data::find_text_column(samples, taken);
      if (column.empty()) return {};
      return {column};
    },
    .rank = 20,
    .check = check_tokens,
    .stream = token_stream,
    .learn = [](const Section& section, const Reading& reading) -> std::unique_ptr<Input> {
      const auto& columns = reading.samples->columns();
      // As window_stream() has cut them.
      const bool windows =
          reading.streamed && columns.size() == 1 && columns[0].kind == data::ColumnKind::bytes;
      return tokens_of(section,
                       {windows ? columns[0].name : text_column(section, *reading.samples, reading.taken)},
                       false);
    },
    .load = [](const Section& section, const std::string& encoding) -> std::unique_ptr<Input> {
      return tokens_of(section, parse_token_encoding(section, encoding), true);
    },
    .draft = [](const data::Dataset& /*samples*/, const std::vector<std::string>& columns) -> std::string {
      return columns.empty() ? "" : fmt::format("column = \"{}\"\n", columns[0]);
    },
};

}  // namespace millrace::task
