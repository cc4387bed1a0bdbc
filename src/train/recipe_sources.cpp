// What a recipe says about where its samples come from.
#include "base/format.h"
#include "data/feed/streams/stream_order.h"
#include "train/recipe.h"

namespace millrace::train {
namespace {

void check_stream(const Recipe& recipe, const std::string& name) {
  const Recipe::Data& data = recipe.data;
  if (!data.stream) {
    if (data.order.starts_with("shuffle-buffer"))
      fail<InputError>("{}: data.order = \"{}\" is for streams: set data.stream = true, or take \"shuffle\"",
                       name, data.order);
    for (const auto& [key, given] :
         {std::pair("epoch_samples", data.epoch_samples > 0), std::pair("classes", !data.classes.empty())})
      if (given)
        fail<InputError>("{}: data.{} is for streams: set data.stream = true, or leave it out", name, key);
    return;
  }
  try {
    (void)data::stream_buffer(data.order);
  } catch (const InputError& error) {
    fail<InputError>("{}: {}", name, error.what());
  }
  if (data.epoch_samples == 0 && recipe.train.steps == 0)
    fail<InputError>(
        "{}: a stream has no epochs of its own: give data.epoch_samples, the samples that count as one, or "
        "train.steps",
        name);
  if (data.classes.empty() && data.test.empty())
    fail<InputError>(
        "{}: the classes of a stream must be known before its end: give data.classes, or data.test", name);
}

}  // namespace

std::vector<std::pair<const char*, bool>> picture_keys(const Recipe& recipe) {
  const Recipe::Data& d = recipe.data;
  return {{"data.augment", !d.augment.empty()},
          {"data.mix", !d.mix.empty()},
          {"data.train.NAME (a mixture)", !d.sources.empty()},
          {"data.stream", d.stream},
          {"data.sample_weight", !d.sample_weight.empty()},
          {"data.resize", d.resize > 0},
          {"data.crop", d.crop > 0},
          {"data.channels", d.channels > 0},
          {"data.mean", !d.mean.empty()},
          {"eval.tta", recipe.eval.tta != "none"}};
}

void check_sources(const Recipe& recipe, const std::string& name) {
  const Recipe::Data& data = recipe.data;
  if (data.train.empty() && data.sources.empty())
    fail<InputError>("{}: data.train does not say where the training pictures are", name);
  if (!data.train.empty() && !data.sources.empty())
    fail<InputError>("{}: data.train is one source, and data.train.{} another: give all of them names", name,
                     data.sources.begin()->first);
  for (const auto& [source, share] : data.weights)
    if (!data.sources.contains(source))
      fail<InputError>("{}: data.weights.{} is the weight of no source: data.train has none of this name",
                       name, source);
  double sum = data.weights.empty() ? 1 : 0;
  for (const auto& [source, path] : data.sources) {
    if (data.weights.empty()) break;
    const auto share = data.weights.find(source);
    if (share == data.weights.end())
      fail<InputError>("{}: data.weights has none for the source '{}': give it one, be it 0", name, source);
    sum += share->second;
  }
  if (!(sum > 0)) fail<InputError>("{}: all of data.weights are 0: one must be more", name);
  std::string input;  // the source that is standard input
  for (const auto& [source, path] : data.sources) {
    if (path != "-") continue;
    if (!input.empty())
      fail<InputError>("{}: data.train.{} and data.train.{} are both standard input, of which there is one",
                       name, input, source);
    input = source;
  }
  check_stream(recipe, name);
}

}  // namespace millrace::train
