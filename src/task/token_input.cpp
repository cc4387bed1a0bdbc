#include "task/token_input.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include <millrace/dataset.h>

#include "base/contains.h"
#include "base/format.h"
#include "base/number_from.h"
#include "base/size_text.h"
#include "base/utf8.h"
#include "data/encode/text_column.h"
#include "data/feed/sequences/token_rows.h"
#include "data/io/location.h"
#include "data/order/order.h"
#include "data/table/part_of.h"
#include "task/json_text.h"

namespace millrace::task {

using Layout = data::TokenOptions::Layout;
using Learn = data::TokenOptions::Learn;

SequenceLayout SequenceLayout::parse(const std::string& text, const std::string& key,
                                     const std::vector<std::string>& allowed, int64_t longest) {
  std::istringstream words(text);
  std::string kind;
  words >> kind;
  std::vector<int64_t> numbers;
  for (std::string word; words >> word;) {
    const std::optional<int64_t> number = number_from(word);
    if (!number || *number < 1)
      fail<InputError>("{} = \"{}\": '{}' is no whole number from 1 on", key, text, word);
    numbers.push_back(*number);
  }
  const bool buckets = kind == "buckets";
  if (!contains(allowed, kind) || buckets == numbers.empty()) {
    std::string forms;
    for (const std::string& form : allowed)
      forms +=
          (forms.empty() ? "" : ", ") +
          (form == "buckets" ? std::string("\"buckets 4\" or \"buckets 32 64 128\"") : "\"" + form + "\"");
    fail<InputError>("{} = \"{}\": give {}", key, text, forms);
  }
  SequenceLayout made;
  made.layout = kind == "windows" ? Layout::windows : kind == "packed" ? Layout::packed : Layout::padded;
  if (!buckets) return made;
  if (numbers.size() == 1)
    made.buckets = numbers[0];
  else
    made.lengths = numbers;
  if (made.buckets > 16 || numbers.size() > 16)
    fail<InputError>("{} = \"{}\": at most 16 buckets, each has a step of its own compiled", key, text);
  for (size_t i = 1; i < numbers.size(); ++i)
    if (numbers[i] <= numbers[i - 1]) fail<InputError>("{} = \"{}\": lengths must ascend", key, text);
  if (!made.lengths.empty() && made.lengths.back() != longest)
    fail<InputError>("{} = \"{}\": the longest bucket must be the input's length = {}", key, text, longest);
  return made;
}

std::vector<Setting> token_settings() {
  return {{"column", "column of the texts; empty: the one that is called text, or the only one of texts",
           std::string()},
          {.name = "tokenizer",
           .doc = "\"byte\", a tokenizer.json of Hugging Face, or WordPiece's vocab.txt",
           .usual = std::string("byte"),
           .path = true},
          {"length", "most tokens in a row", int64_t{256}, 1, 1 << 20}};
}

int32_t mask_of(const data::Tokenizer& tokenizer) {
  for (const char* name : {"[MASK]", "<mask>"})
    if (const auto id = tokenizer.size() > 256 || tokenizer.digest() ? tokenizer.id(name) : std::nullopt)
      return *id;
  return static_cast<int32_t>(tokenizer.size());
}

std::string text_column(const Section& section, const data::Dataset& samples,
                        const std::vector<std::string>& taken) {
  return data::text_column(samples, section.settings.text("column"), taken, input_key(section));
}

std::string model_kind_of(const Section& input, const Recipe& recipe) {
  if (input.name.empty()) return recipe.model.kind;
  const auto branch = recipe.model.branches.find(input.name);
  return branch == recipe.model.branches.end() ? "" : branch->second.kind;
}

TokenEncoding parse_token_encoding(const Section& section, const std::string& text) {
  return read_encoding(text, input_key(section), [](const nlohmann::json& json) {
    return TokenEncoding{text_of_stored(json.at("column").get<std::string>()),
                         json.at("tokenizer").get<uint32_t>(), json.at("vocabulary").get<int64_t>()};
  });
}

TokenInput::TokenInput(Section section, SequenceLayout layout, TokenEncoding known, bool loaded)
    : Input(std::move(section)),
      layout_(std::move(layout)),
      known_(std::move(known)),
      tokenizer_(data::open_tokenizer(expand(section_.settings.text("tokenizer")))) {
  if (loaded && tokenizer_->digest() != known_.digest)
    fail<InputError>("{} is not the tokenizer that the run was begun with: its content has changed",
                     section_.settings.text("tokenizer"));
  known_.digest = tokenizer_->digest();
  if (known_.vocabulary == 0) known_.vocabulary = tokenizer_->size();
  if (section_.settings.text("column").empty()) section_.set("column", known_.column);
}

std::string TokenInput::encoding() const {
  return nlohmann::json{
      {"column", stored_text(known_.column)}, {"tokenizer", known_.digest}, {"vocabulary", known_.vocabulary}}
      .dump();
}

std::vector<std::string> TokenInput::notes() const { return opened_; }

std::vector<data::Field> TokenInput::fields() const {
  const Type type{i64, {Dim::named("batch"), fixed() ? Dim(most()) : Dim::named("length")}};
  std::vector<data::Field> all = {{"tokens", type}};
  if (layout_.layout != Layout::windows) all.push_back({"segments", type});
  if (layout_.layout == Layout::packed) all.push_back({"positions", type});
  return all;
}

std::vector<Tensor> TokenInput::graph(std::span<const Tensor> fields, bool /*training*/) const {
  return {fields.begin(), fields.end()};
}

void TokenInput::describe(nn::ModelOptions& options) const {
  options.input = {most()};
  options.vocabulary = vocabulary();
}

int64_t TokenInput::shared_ids(const Input& other) const {
  const auto* tokens = dynamic_cast<const TokenInput*>(&other);
  return tokens && tokens->known_.digest == known_.digest ? tokenizer_->size() : 0;
}

std::vector<Tensor> TokenInput::decoded_fields(const Tensor& tokens, const Tensor& positions) const {
  std::vector<Tensor> row;
  for (const data::Field& field : fields())
    row.push_back(field.name == "tokens"     ? tokens
                  : field.name == "segments" ? Tensor::ones(tokens.shape(), i64)
                                             : positions);
  return row;
}

std::vector<int32_t> TokenInput::beginning() const {
  if (const auto end = this->end()) return {*end};
  return tokenizer_->encode(separator(), false);
}

std::optional<int32_t> TokenInput::end() const {
  const auto special = [&](int32_t id) { return tokenizer_->decode({&id, 1}, true).empty(); };
  if (const auto ids = tokenizer_->encode(separator(), false); ids.size() == 1 && special(ids[0]))
    return ids[0];
  if (layout_.layout == Layout::windows) return std::nullopt;
  const auto around = tokenizer_->encode("", true);
  return around.empty() || !special(around.back()) ? std::nullopt : std::optional(around.back());
}

std::vector<Array> TokenInput::row_of(std::span<const int32_t> ids) const {
  std::vector<Array> row;
  for (const data::Field& field : fields()) {
    const std::span<int64_t> places = row.emplace_back(i64, Shape{1, most()}).as<int64_t>();
    const size_t count = std::min(ids.size(), places.size());
    for (size_t i = 0; i < count; ++i)
      places[i] = field.name == "tokens" ? ids[i] : field.name == "segments" ? 1 : static_cast<int64_t>(i);
  }
  return row;
}

namespace {

/// What tokens may take in memory: of data.memory half, since there is a test set, too.
int64_t most_token_bytes(const Recipe& recipe) {
  const int64_t most = recipe.data.cache_mb << 20;
  if (recipe.data.memory.empty()) return most;
  return std::min(most, static_cast<int64_t>(parse_bytes("data.memory", recipe.data.memory) / 2));
}

/// What data.sample leaves of a corpus.
void take_piece(data::TextOptions& options, const data::Dataset& samples, const Recipe& recipe) {
  if (recipe.data.sample.empty()) return;
  const auto size = data::PartSize::parse(recipe.data.sample);
  if (size.share == 0 && samples.count() == 1)
    fail<InputError>(
        "data.sample = \"{0}\": {1} is one text, of which {0} cannot be taken; give a share, as 2%",
        recipe.data.sample, samples.path());
  const double texts = static_cast<double>(samples.count()) * (1 - recipe.data.test_share);
  options.sample = size.share > 0 ? size.share : std::min(1.0, static_cast<double>(size.count) / texts);
  options.seed = static_cast<uint64_t>(recipe.train.seed);
}

bool has_text_column(const data::Dataset& dataset, const std::string& name) {
  const auto found = dataset.find_column(name);
  return found && dataset.columns()[*found].kind == data::ColumnKind::text;
}

}  // namespace

std::shared_ptr<const data::Part> TokenInput::part(const Reading& reading, Purpose purpose) const {
  const data::Dataset& samples = *reading.samples;
  data::TokenOptions rows;
  rows.layout = layout_.layout;
  rows.length = most();
  rows.vocabulary = tokenizer_->size();
  rows.fixed = fixed() || reading.streamed;
  if (purpose != Purpose::prediction) {
    rows.learn = learns();
    masking(rows);
  }
  if (reading.streamed) {
    opened_ = {fmt::format("{} of {} tokens ({} of {})", fixed() ? "texts in rows" : "rows", most(),
                           tokenizer_->description(), tokenizer_->size())};
    return std::make_shared<data::TokenPart>(
        data::TextReader{tokenizer_, data::ColumnPlace(samples, column()), separator()}, rows);
  }
  data::TextOptions options;
  // Of texts that are files of their own, or lines, there is one column whatever it is called.
  const bool plain =
      samples.format() == "text" || samples.format() == "folder" || samples.format() == "memory";
  options.column = plain && !has_text_column(samples, column()) ? data::find_text_column(samples) : column();
  options.separator = separator();
  options.special = layout_.layout != Layout::windows;
  options.test_share = reading.recipe.data.test_share;
  options.part = reading.share == Reading::Share::train  ? data::TextOptions::Part::train
                 : reading.share == Reading::Share::test ? data::TextOptions::Part::test
                                                         : data::TextOptions::Part::all;
  if (reading.share == Reading::Share::train) take_piece(options, samples, reading.recipe);
  options.most_bytes = most_token_bytes(reading.recipe);
  if (reading.progress)
    options.progress = [&](int64_t done, int64_t total) { reading.progress(samples.path(), done, total); };
  auto texts = std::make_shared<const data::Texts>(data::read_texts(samples, *tokenizer_, options));
  opened_ = {fmt::format("{} texts, {} tokens ({} of {})", texts->count(), texts->tokens.size(),
                         tokenizer_->description(), tokenizer_->size())};
  if (const int64_t cut = layout_.layout == Layout::padded ? texts->longer_than(most() + rows.behind()) : 0;
      cut > 0)
    opened_.push_back(fmt::format("{} of the texts are longer than {}.length = {} and cut", cut,
                                  input_key(section_), most()));
  if (!texts->file.empty())
    opened_.push_back(
        fmt::format("the tokens are more than data.cache_mb or data.memory and lie in {}", texts->file));
  return std::make_shared<data::TokenPart>(std::move(texts), rows);
}

std::unique_ptr<data::RowPlan> TokenInput::rows(const data::Part& part, const Reading& reading,
                                                Purpose purpose, int64_t batch) const {
  if (fixed()) return nullptr;
  const auto& tokens = dynamic_cast<const data::TokenPart&>(part);
  // The part stays as long as the feed.
  std::shared_ptr<const data::Texts> texts(std::shared_ptr<void>(), &tokens.texts());
  const bool training = purpose == Purpose::training;
  if (training && !reading.recipe.data.weights.empty())
    fail<InputError>("data.weights: texts come as they lie in the sources, they cannot be mixed by shares");
  data::PlanOptions plan;
  plan.batch = batch;
  plan.order = training ? reading.recipe.data.order : "sequential";
  plan.whole_batches = training;
  plan.whole_windows = training || tokens.options().learn == Learn::masked;
  if (layout_.layout == Layout::padded) {
    plan.buckets = layout_.lengths;
    if (layout_.buckets > 1) {
      std::vector<int64_t> lengths;
      for (int64_t i = 0; i < texts->count(); ++i) lengths.push_back(texts->length(i));
      plan.buckets = data::best_buckets(lengths, most(), layout_.buckets);
    }
    if (!reading.labels.empty() && training) {
      // An order by class: of each text the class of its sample.
      auto labelled = std::make_shared<data::Texts>(*texts);
      labelled->classes = reading.classes;
      for (const int64_t sample : labelled->indices)
        labelled->labels.push_back(reading.labels.at(static_cast<size_t>(sample)));
      texts = std::move(labelled);
    }
  }
  return data::token_rows(std::move(texts), tokens.options(), std::move(plan));
}

bool TokenInput::is_sample(const std::string& argument) const {
  std::error_code ignored;
  const std::string end = std::filesystem::path(argument).extension().string();
  const bool file = argument.find_first_of(" \n\t") == std::string::npos && argument.size() > end.size() &&
                    (end == ".txt" || end == ".csv" || end == ".tsv" || end == ".jsonl" ||
                     end == ".parquet" || end == ".arrow");
  const bool there = std::filesystem::exists(argument, ignored);
  if (file && argument.find_first_of("*?[{") == std::string::npos && !data::is_elsewhere(argument) && !there)
    fail<InputError>("{}: no such file; check the path", argument);
  return !(file || there || data::is_elsewhere(argument));
}

std::shared_ptr<const data::Dataset> TokenInput::sample(const std::string& argument) const {
  return data::memory_dataset(argument, {{column(), data::ColumnKind::text}}, {{argument}});
}

namespace {

/// The tokens of a row of arrays, of all of its texts or of the first.
std::vector<int32_t> ids_in(std::span<const Array> row, bool windows, bool all) {
  const std::span<const int64_t> tokens = row[0].as<int64_t>();
  std::vector<int32_t> ids;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int64_t text = windows ? 1 : row[1].as<int64_t>()[i];
    if (text == 1 || (all && text > 1)) ids.push_back(static_cast<int32_t>(tokens[i]));
  }
  return ids;
}

}  // namespace

std::vector<int32_t> TokenInput::ids_of(std::span<const Array> row) const {
  return ids_in(row, layout_.layout == Layout::windows, false);
}

std::string TokenInput::text(std::span<const Array> row) const {
  return tokenizer_->decode(ids_in(row, layout_.layout == Layout::windows, true), false);
}

std::string TokenInput::row_text(const data::Part& part, const data::RowPick& row) const {
  const auto& tokens = dynamic_cast<const data::TokenPart&>(part);
  const data::Texts& texts = tokens.texts();
  std::vector<data::Extract> extracts = row.extracts;
  if (extracts.empty() && row.pick.index >= 0) extracts = {tokens.extract(row.pick.index, most())};
  std::string line;
  for (const data::Extract& each : extracts) {
    const auto first = std::upper_bound(texts.begins.begin(), texts.begins.end(), each.begin) - 1;
    const auto text = static_cast<size_t>(each.text >= 0 ? each.text : first - texts.begins.begin());
    line += fmt::format("{}text {} from its token {} on, {} tokens", line.empty() ? "" : "; ",
                        texts.indices.at(text), each.begin - texts.begins.at(text), each.size);
  }
  return line;
}

}  // namespace millrace::task
