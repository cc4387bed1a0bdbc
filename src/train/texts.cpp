#include "train/texts.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/format.h"
#include "base/size_text.h"
#include "data/feed/sequences/text_feed.h"
#include "data/formats/open_dataset.h"
#include "data/table/query.h"
#include "data/table/select.h"

namespace millrace::train {
namespace {

/// data.sequences as it is written.
struct Sequences {
  data::Rows rows = data::Rows::windows;
  int64_t buckets = 1;           // how many, chosen by the data
  std::vector<int64_t> lengths;  // or these
};

Sequences parse_sequences(const Recipe& recipe) {
  const std::string& text = recipe.data.sequences;
  std::istringstream words(text);
  std::string kind;
  words >> kind;
  std::vector<int64_t> numbers;
  for (std::string word; words >> word;) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || number < 1)
      fail<InputError>("data.sequences = \"{}\": '{}' is no whole number from 1 on", text, word);
    numbers.push_back(number);
  }
  Sequences s;
  if (kind == "buckets" && !numbers.empty()) {
    s.rows = data::Rows::padded;
    if (numbers.size() == 1)
      s.buckets = numbers[0];
    else
      s.lengths = numbers;
    if (s.buckets > 16 || numbers.size() > 16)
      fail<InputError>("data.sequences = \"{}\": at most 16 buckets, each has a step of its own compiled",
                       text);
    for (size_t i = 1; i < numbers.size(); ++i)
      if (numbers[i] <= numbers[i - 1])
        fail<InputError>("data.sequences = \"{}\": lengths must ascend", text);
    if (!s.lengths.empty() && s.lengths.back() != recipe.data.length)
      fail<InputError>("data.sequences = \"{}\": the longest bucket must be data.length = {}", text,
                       recipe.data.length);
    return s;
  }
  if (!numbers.empty() || (kind != "windows" && kind != "packed" && kind != "padded"))
    fail<InputError>(
        "data.sequences = \"{}\": give \"windows\", \"packed\", \"padded\", \"buckets 4\" or \"buckets 32 64 "
        "128\"",
        text);
  s.rows = kind == "windows"  ? data::Rows::windows
           : kind == "packed" ? data::Rows::packed
                              : data::Rows::padded;
  return s;
}

bool has_classes(const Recipe& recipe) { return !recipe.data.label.empty(); }

/// What stands for masked tokens: the tokeniser's own, else one more.
int32_t mask_of(const data::Tokenizer& tokenizer) {
  for (const char* name : {"[MASK]", "<mask>"})
    if (const auto id = tokenizer.size() > 256 || tokenizer.digest() ? tokenizer.id(name) : std::nullopt)
      return *id;
  return static_cast<int32_t>(tokenizer.size());
}

int64_t vocabulary_of(const Recipe& recipe, const data::Tokenizer& tokenizer) {
  return recipe.data.spans.empty() ? tokenizer.size()
                                   : std::max<int64_t>(tokenizer.size(), mask_of(tokenizer) + 1);
}

/// What tokens may take in memory: of data.memory half, since there is a test set, too.
int64_t most_token_bytes(const Recipe& recipe) {
  const int64_t most = recipe.data.cache_mb << 20;
  if (recipe.data.memory.empty()) return most;
  return std::min(most, static_cast<int64_t>(parse_bytes("data.memory", recipe.data.memory) / 2));
}

std::unique_ptr<data::Feed> feed_of(const Recipe& recipe, std::shared_ptr<const data::Texts> texts,
                                    const data::Tokenizer& tokenizer, bool training,
                                    std::vector<std::string> notes) {
  const Sequences sequences = parse_sequences(recipe);
  data::TextFeedOptions feed;
  feed.rows = sequences.rows;
  feed.seed = static_cast<uint64_t>(recipe.train.seed);
  feed.vocabulary = tokenizer.size();
  if (!recipe.data.spans.empty()) {
    feed.spans = data::SpanOptions::parse(recipe.data.spans);
    feed.mask = mask_of(tokenizer);
  }
  feed.plan.length = recipe.data.length;
  feed.plan.batch = training ? recipe.train.batch : recipe.eval.batch;
  feed.plan.order = training ? recipe.data.order : "sequential";
  feed.plan.whole_batches = training;
  feed.plan.whole_windows = training || feed.spans;
  if (sequences.rows == data::Rows::padded) {
    feed.plan.buckets = sequences.lengths;
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < texts->count(); ++i) lengths.push_back(texts->length(i));
    if (sequences.buckets > 1)
      feed.plan.buckets = data::best_buckets(lengths, recipe.data.length, sequences.buckets);
  }
  feed.notes = std::move(notes);
  return data::text_feed(std::move(texts), std::move(feed));
}

std::unique_ptr<data::Feed> open_feed(const Recipe& recipe, const std::string& path,
                                      data::TextOptions options, bool training,
                                      const ReadProgress& progress) {
  const auto tokenizer = tokenizer_of(recipe);
  const Sequences sequences = parse_sequences(recipe);
  std::shared_ptr<const data::Dataset> dataset = data::open_dataset(expand(path));
  if (training && !recipe.data.where.empty())
    dataset = data::select(dataset, data::Query::parse(recipe.data.where));
  options.column = recipe.data.text;
  options.label = recipe.data.label;
  if (!has_classes(recipe)) options.separator = recipe.data.separator;
  options.special = sequences.rows != data::Rows::windows;
  options.test_share = recipe.data.test_share;
  options.most_bytes = most_token_bytes(recipe);
  if (progress)
    options.progress = [&](int64_t done, int64_t total) { progress(dataset->path(), done, total); };
  auto texts = std::make_shared<const data::Texts>(data::read_texts(*dataset, *tokenizer, options));
  std::vector<std::string> notes = dataset->notes();
  notes.push_back(fmt::format("{}: {} texts, {} tokens ({} of {}){}", dataset->path(), texts->count(),
                              texts->tokens.size(), tokenizer->description(), tokenizer->size(),
                              has_classes(recipe) ? fmt::format(", {} classes", texts->classes.size()) : ""));
  if (!texts->file.empty())
    notes.push_back(fmt::format("{}: its tokens are more than data.cache_mb or data.memory and lie in {}",
                                dataset->path(), texts->file));
  return feed_of(recipe, std::move(texts), *tokenizer, training, std::move(notes));
}

[[noreturn]] void only_for_texts(const std::string& name, const char* key) {
  fail<InputError>("{}: {} is for texts, which data.tokenizer = \"byte\" or a file declares", name, key);
}

void check_without(const Recipe& recipe, const std::string& name) {
  const Recipe::Data usual;
  const Recipe::Data& d = recipe.data;
  if (!d.text.empty()) only_for_texts(name, "data.text");
  if (!d.label.empty()) only_for_texts(name, "data.label");
  if (!d.spans.empty()) only_for_texts(name, "data.spans");
  if (d.sequences != usual.sequences) only_for_texts(name, "data.sequences");
  if (d.test_share > 0) only_for_texts(name, "data.test_share");
  for (const std::string& metric : recipe.eval.metrics)
    if (metric == "bits-per-byte") only_for_texts(name, "the metric bits-per-byte");
}

}  // namespace

std::shared_ptr<const data::Tokenizer> tokenizer_of(const Recipe& recipe) {
  return data::open_tokenizer(expand(recipe.data.tokenizer));
}

void check_texts(const Recipe& recipe, const std::string& name) {
  const Recipe::Data& d = recipe.data;
  if (d.tokenizer.empty()) return check_without(recipe, name);
  auto pictures = picture_keys(recipe);
  pictures.emplace_back("model.layers", !recipe.model.layers.empty());
  for (const auto& [key, given] : pictures)
    if (given)
      fail<InputError>("{}: {} is for pictures, data.tokenizer says that the samples are texts", name, key);
  if (!d.test.empty() && d.test_share > 0)
    fail<InputError>("{}: data.test and data.test_share both say what to test on: give one", name);
  const std::string& kind = recipe.model.kind;
  try {
    const Sequences sequences = parse_sequences(recipe);
    if (!d.spans.empty()) (void)data::SpanOptions::parse(d.spans);
    if (!d.spans.empty() && d.length < 2)
      fail<InputError>("data.spans = \"{}\": of rows of data.length = 1 nothing can be masked", d.spans);
    if (has_classes(recipe) && sequences.rows != data::Rows::padded)
      fail<InputError>(
          "data.label = \"{}\": texts with classes need a row each: data.sequences \"padded\" or \"buckets "
          "4\"",
          d.label);
    if (sequences.rows != data::Rows::windows && kind != "gpt" && kind != "encoder" && kind != "bag")
      fail<InputError>(
          "model.kind = \"{}\" takes rows without padding only (data.sequences = \"windows\"); gpt, encoder "
          "and bag take others",
          kind);
  } catch (const InputError& error) {
    fail<InputError>("{}: {}", name, error.what());
  }
  if (has_classes(recipe) && !d.spans.empty())
    fail<InputError>("{}: data.label and data.spans both say what to learn: give one", name);
  if (has_classes(recipe) && kind == "gpt")
    fail<InputError>("{}: model.kind = \"gpt\" predicts tokens; for classes take encoder or bag", name);
  if (!has_classes(recipe) && (kind == "bag" || (kind == "encoder") == d.spans.empty()))
    fail<InputError>(
        "{}: without data.label the model predicts tokens: gpt the next one, encoder with data.spans masked "
        "ones",
        name);
  for (const std::string& metric : recipe.eval.metrics)
    if (metric == "bits-per-byte" && (has_classes(recipe) || !d.spans.empty()))
      fail<InputError>("{}: bits-per-byte is of models that predict the next token", name);
}

std::unique_ptr<data::Feed> training_texts(const Recipe& recipe, const ReadProgress& progress) {
  data::TextOptions options;
  options.part = recipe.data.test_share > 0 ? data::TextOptions::Part::train : data::TextOptions::Part::all;
  return open_feed(recipe, recipe.data.train, std::move(options), true, progress);
}

std::unique_ptr<data::Feed> test_texts(const Recipe& recipe, const std::vector<std::string>& classes,
                                       const std::string& path, const ReadProgress& progress) {
  data::TextOptions options;
  options.classes = classes;
  std::string from = path.empty() ? recipe.data.test : path;
  if (from.empty()) {
    options.part = data::TextOptions::Part::test;
    from = recipe.data.train;
  }
  return open_feed(recipe, from, std::move(options), false, progress);
}

std::unique_ptr<data::Feed> texts_at_step(const Recipe& recipe, int64_t step) {
  auto feed = training_texts(recipe, nullptr);
  feed->seek(cursor_at_step(*feed, step));
  return feed;
}

std::shared_ptr<const data::Dataset> open_texts(const Recipe& recipe, const std::string& path) {
  const std::string& column = recipe.data.text;
  const auto has_column = [&](const data::Dataset& dataset) {
    return std::any_of(dataset.columns().begin(), dataset.columns().end(),
                       [&](const data::Column& each) { return each.name == column; });
  };
  data::OpenOptions options;
  if (!column.empty()) options.texts = {column};
  std::shared_ptr<const data::Dataset> dataset = data::open_dataset(path, options);
  // Of a few rows it cannot be told from the content whether the first is names, but from the name.
  if (!column.empty() && dataset->format() == "csv" && path != "-" && !path.starts_with("pipe:") &&
      !has_column(*dataset)) {
    options.header = true;
    std::shared_ptr<const data::Dataset> named;
    try {
      named = data::open_dataset(path, options);
    } catch (const InputError&) {  // there is nothing behind the names
    }
    if (named && has_column(*named)) return named;
  }
  return dataset;
}

std::unique_ptr<data::Feed> unlabelled_texts(const Recipe& recipe, const data::Dataset& dataset) {
  const auto tokenizer = tokenizer_of(recipe);
  data::TextOptions options;
  const bool plain = dataset.format() == "text" || dataset.format() == "folder";
  if (!plain) options.column = recipe.data.text;
  options.special = true;
  options.most_bytes = most_token_bytes(recipe);
  data::Texts texts = data::read_texts(dataset, *tokenizer, options);
  texts.labels = texts.indices;
  return feed_of(recipe, std::make_shared<const data::Texts>(std::move(texts)), *tokenizer, false, {});
}

PreparedTail prepared_tail(const Session& session, std::span<const int32_t> ids) {
  ids = ids.last(std::min(ids.size(), static_cast<size_t>(session.length)));
  PreparedTail row{{}, static_cast<int64_t>(ids.size())};
  const auto specs = specs_of(session.inputs, 1, session.length);
  for (size_t input = 0; input < specs.size(); ++input) {
    const std::span<int64_t> places = row.inputs.emplace_back(specs[input].type).as<int64_t>();
    // Tokens, segments, positions (text_inputs).
    for (size_t i = 0; i < ids.size(); ++i)
      places[i] = input == 0 ? ids[i] : input == 1 ? 1 : static_cast<int64_t>(i);
  }
  return row;
}

std::vector<Array> prepared_text(const Session& session, const std::string& text) {
  std::vector<int32_t> ids = tokenizer_of(session.recipe)->encode(text);
  if (static_cast<int64_t>(ids.size()) > session.length) ids.resize(static_cast<size_t>(session.length));
  std::vector<Array> arrays;
  for (const optim::TensorSpec& spec : specs_of(session.inputs, 1, session.length)) {
    const std::span<int64_t> places = arrays.emplace_back(spec.type).as<int64_t>();
    for (size_t i = 0; i < ids.size(); ++i) places[i] = arrays.size() == 1 ? ids[i] : 1;
  }
  return arrays;
}

Session make_text_session(Recipe recipe, std::vector<std::string> classes) {
  const auto tokenizer = tokenizer_of(recipe);
  nn::ModelOptions options;
  options.classes = static_cast<int64_t>(classes.size());
  options.input = {recipe.data.length};
  options.vocabulary = vocabulary_of(recipe, *tokenizer);
  options.width = recipe.model.width;
  options.depth = recipe.model.depth;
  options.heads = recipe.model.heads;
  options.dropout = recipe.model.dropout;
  options.tokens = classes.empty();
  nn::Model model = nn::make_model(recipe.model.kind, options);
  if (model.inputs.size() != 1 || model.inputs[0].type.shape.rank() != 2 || model.inputs[0].type.dtype != i64)
    fail<InputError>("the model '{}' does not take texts", recipe.model.kind);
  const int64_t length = recipe.data.length, outputs = classes.empty() ? options.vocabulary : options.classes;
  auto inputs = data::text_inputs(parse_sequences(recipe).rows);
  Session session = make_session(std::move(recipe), std::move(classes), std::move(model), std::move(inputs),
                                 length, outputs);
  session.tokenizer = tokenizer->digest();
  return session;
}

}  // namespace millrace::train
