// Texts, each of which is a sample.
#include <algorithm>
#include <memory>
#include <set>

#include "base/contains.h"
#include "base/format.h"
#include "data/table/dates.h"
#include "data/table/labels.h"
#include "data/table/read_columns.h"
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

/// Texts that are to be read, rather than a table's categories and dates: most of the first ones differ.
bool are_to_read(const data::Dataset& samples, const std::string& name) {
  const size_t column = samples.column(name);
  const int64_t count = std::min<int64_t>(samples.count(), 1000);
  const auto values = data::read_columns(samples, 0, count, {&column, 1});
  std::set<std::string_view> different;
  size_t there = 0, dates = 0;
  for (size_t i = 0; i < values[0].size(); ++i) {
    if (!values[0].has(i)) continue;
    const std::string_view text = values[0].contents[i];
    ++there;
    different.insert(text);
    dates += data::is_date(text);
  }
  return 2 * different.size() >= there && 2 * dates <= there;
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
      const std::string column = data::find_text_column(samples, taken);
      // Beside numbers a text is one of the columns of a table, unless it is called so.
      for (const data::Column& other : samples.columns())
        if (column != "text" && data::is_numeric(other.kind) && !contains(taken, other.name)) return {};
      if (column.empty() || (column != "text" && !are_to_read(samples, column))) return {};
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
