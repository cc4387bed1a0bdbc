// Texts, each of which is a sample.
#include <algorithm>
#include <memory>

#include "base/format.h"
#include "data/encode/text_column.h"
#include "data/table/labels.h"
#include "task/token_input.h"

namespace millrace::task {
namespace {

SequenceLayout text_layout(const Section& section) {
  return SequenceLayout::parse(section.settings.text("sequences"), input_key(section) + ".sequences",
                               {"padded", "buckets"}, section.settings.integer("length"));
}

class TextInput final : public TokenInput {
 public:
  using TokenInput::TokenInput;
  std::vector<std::string> architectures() const override {
    return {"encoder", "bag", "lstm", "gru", "bert"};
  }
  data::TokenOptions::Learn learns() const override { return data::TokenOptions::Learn::nothing; }
};

void check_text(const Section& section, const Recipe& recipe) {
  (void)text_layout(section);
  const std::string kind = model_kind_of(section, recipe);
  if (kind == "gpt")
    fail<InputError>(
        "model.kind = \"gpt\" predicts the next token, and {}.kind = \"text\" is for what is known of whole "
        "texts: take encoder, bag, bert, lstm or gru, or {}.kind = \"tokens\"",
        input_key(section), input_key(section));
}

}  // namespace

MILLRACE_INPUT(text){
    .name = "text",
    .doc = "texts, each of which is a sample, as tokens",
    .unit = "texts",
    .settings =
        [] {
          std::vector<Setting> settings = token_settings();
          settings.push_back(
              {"sequences",
               "\"padded\": every row has the full length; \"buckets 4\": texts of similar length come "
               "together, padded to one of 4 lengths chosen by the data, or \"buckets 32 64 128\"",
               std::string("buckets 4")});
          return settings;
        }(),
    .recognise = [](const data::Dataset& samples,
                    const std::vector<std::string>& taken) -> std::vector<std::string> {
      // Where nothing else is there to be predicted, it is the text itself: kind tokens.
      if (taken.empty() && !data::find_label(samples)) return {};
      const std::string column = data::find_text_to_read(samples, taken);
      if (column.empty()) return {};
      return {column};
    },
    .rank = 20,
    .check = check_text,
    .longest = [](const Section& section) -> int64_t {
      return text_layout(section).fixed() ? 0 : section.settings.integer("length");
    },
    .pad =
        [](Section& section) {
          if (!section.settings.given("sequences")) section.set("sequences", std::string("padded"));
        },
    .learn = [](const Section& section, const Reading& reading) -> std::unique_ptr<Input> {
      return std::make_unique<TextInput>(section, text_layout(section),
                                         TokenEncoding{text_column(section, *reading.samples, reading.taken)},
                                         false);
    },
    .load = [](const Section& section, const std::string& encoding) -> std::unique_ptr<Input> {
      return std::make_unique<TextInput>(section, text_layout(section),
                                         parse_token_encoding(section, encoding), true);
    },
    .draft = [](const data::Dataset& /*samples*/, const std::vector<std::string>& columns) -> std::string {
      return columns.empty() ? "" : fmt::format("column = \"{}\"\n", columns[0]);
    },
};

}  // namespace millrace::task
