// What a recipe says about where its samples come from.
#include "base/format.h"
#include "data/feed/streams/stream_order.h"
#include "data/order/order.h"
#include "task/output.h"
#include "task/recipe_check.h"
#include "task/recipe_sections.h"

namespace millrace::task {
namespace {

void check_stream(const Recipe& recipe) {
  const Recipe::Data& data = recipe.data;
  if (!data.stream) {
    if (data.order.starts_with("shuffle-buffer"))
      fail<InputError>("data.order = \"{}\" is for streams: set data.stream = true, or take \"shuffle\"",
                       data.order);
    if (data.epoch_samples > 0)
      fail<InputError>("data.epoch_samples is for streams: set data.stream = true, or leave it out");
    try {
      (void)data::parse_order(data.order);
    } catch (const InputError& error) {
      fail<InputError>("data.order: {}", error.what());
    }
    return;
  }
  (void)data::stream_buffer(data.order);
  if (data.epoch_samples == 0 && recipe.train.steps == 0)
    fail<InputError>(
        "a stream has no epochs of its own: give data.epoch_samples, the samples that count as one, or "
        "train.steps");
  if (!data.missing.empty()) fail<InputError>("data.missing is for files that are opened, not for streams");
  if (data.test_share > 0 || !data.test_where.empty())
    fail<InputError>("of a stream nothing can be kept to test on: give data.test instead of data.{}",
                     data.test_share > 0 ? "test_share" : "test_where");
  if (!data.sample.empty())
    fail<InputError>(
        "data.sample = \"{}\" takes a part of what has random access: of a stream train on less of it "
        "(train.steps, data.epoch_samples)",
        data.sample);
  for (const Section& output : recipe.outputs)
    if (const OutputKind* const kind = output_kinds().find(output.kind);
        kind && !kind->listed.empty() && texts_of(output, kind->listed).empty() && data.test.empty())
      fail<InputError>("the classes of a stream must be known before its end: give {}.{}, or data.test",
                       output_key(output), kind->listed);
}

void check_tests(const Recipe& recipe) {
  const Recipe::Data& data = recipe.data;
  std::vector<const char*> given;
  if (!data.test.empty()) given.push_back("data.test");
  if (!data.test_where.empty()) given.push_back("data.test_where");
  if (data.test_share > 0) given.push_back("data.test_share");
  if (given.size() > 1) fail<InputError>("{} and {} both say what to test on: give one", given[0], given[1]);
  if (data.test_by != "random" && data.test_share == 0)
    fail<InputError>(
        "data.test_by = \"{}\" divides what data.test_share keeps of data.train, and that is 0: give it, "
        "as 0.2",
        data.test_by);
}

/// What only opening a file or a stream could heed, where none is opened: all may be streams or none, and
/// files beside sets are read as the recipe says.
void check_sets(const Recipe& recipe) {
  const Recipe::Data& data = recipe.data;
  std::string set;  // one of those to train on
  bool files = !data.test.empty() && !set_name(data.test);
  const auto look = [&](const std::string& text) {
    if (set_name(text))
      set = text;
    else
      files = files || !text.empty();
  };
  look(data.train);
  for (const auto& [source, text] : data.sources) look(text);
  const char* const key = data.stream                       ? "data.stream"
                          : !files && !data.missing.empty() ? "data.missing"
                          : !files && !data.header.empty()  ? "data.header"
                                                            : nullptr;
  if (!set.empty() && key)
    fail<InputError>("{} says how files are read, and {} is a data set of the program: leave it out", key,
                     set);
}

void check_weights(const Recipe& recipe) {
  const Recipe::Data& data = recipe.data;
  for (const auto& [source, share] : data.weights)
    if (!data.sources.contains(source))
      fail<InputError>("data.weights.{} is the weight of no source: data.train has none of this name",
                       source);
  if (data.weights.empty()) return;
  double sum = 0;
  for (const auto& [source, path] : data.sources) {
    const auto share = data.weights.find(source);
    if (share == data.weights.end())
      fail<InputError>("data.weights has none for the source '{}': give it one, be it 0", source);
    sum += share->second;
  }
  if (!(sum > 0)) fail<InputError>("all of data.weights are 0: one must be more");
}

}  // namespace

void check_sources(const Recipe& recipe) {
  const Recipe::Data& data = recipe.data;
  if (data.train.empty() && data.sources.empty())
    fail<InputError>("data.train does not say where the training samples are");
  if (!data.train.empty() && !data.sources.empty())
    fail<InputError>("data.train is one source, and data.train.{} another: give all of them names",
                     data.sources.begin()->first);
  check_weights(recipe);
  std::string input;  // the source that is standard input
  for (const auto& [source, path] : data.sources) {
    if (path != "-") continue;
    if (!input.empty())
      fail<InputError>("data.train.{} and data.train.{} are both standard input, of which there is one",
                       input, source);
    input = source;
  }
  check_sets(recipe);
  check_stream(recipe);
  check_tests(recipe);
}

std::optional<std::string> set_name(std::string_view text) {
  constexpr std::string_view word = "set:";
  if (!text.starts_with(word)) return std::nullopt;
  return std::string(text.substr(word.size()));
}

}  // namespace millrace::task
