// Training on streams: what is learnt comes from their first samples.
#include <algorithm>

#include "base/format.h"
#include "base/size_text.h"
#include "data/feed/streams/stream_feed.h"
#include "data/feed/streams/stream_order.h"
#include "data/formats/streams/stream.h"
#include "task/feed_parts.h"
#include "task/model.h"
#include "task/open.h"

namespace millrace::task {
namespace {

std::vector<data::NamedStream> streams_of(const Recipe& recipe) {
  std::vector<data::NamedStream> streams;
  const auto open = [&](const std::string& name, const std::string& text) {
    auto stream = data::open_stream(expand(text));
    if (!recipe.data.where.empty()) stream = data::select(std::move(stream), recipe.data.where);
    const data::Stream* const samples = stream.get();
    if (const InputKind* kind = input_kinds().find(recipe.inputs[0].kind); kind && kind->stream)
      stream = kind->stream(recipe.inputs[0], std::move(stream));
    if (stream.get() != samples && !recipe.data.sample_weight.empty())
      fail<InputError>("data.sample_weight = \"{}\": rows are extracts of a corpus, which have no weights",
                       recipe.data.sample_weight);
    streams.push_back({name, std::move(stream)});
  };
  if (recipe.data.sources.empty()) open("", recipe.data.train);
  for (const auto& [name, text] : recipe.data.sources) open(name, text);
  return streams;
}

data::StreamFeedOptions stream_options(const Recipe& recipe, size_t streams) {
  data::StreamFeedOptions options;
  options.batch = recipe.train.batch;
  options.seed = static_cast<uint64_t>(recipe.train.seed);
  options.order = recipe.data.order;
  // The length of a stream is not known: without weights all count alike.
  if (!recipe.data.sources.empty()) options.shares = shares_of(recipe, std::vector<int64_t>(streams, 1));
  options.epoch_samples =
      recipe.data.epoch_samples > 0 ? recipe.data.epoch_samples : recipe.train.steps * recipe.train.batch;
  options.sample_weight = recipe.data.sample_weight;
  if (!recipe.data.memory.empty()) {
    options.memory = static_cast<int64_t>(parse_bytes("data.memory", recipe.data.memory));
    if (has_tests(recipe)) options.memory /= 2;  // as what a stream takes is not known before
  }
  if (const InputKind* kind = input_kinds().find(recipe.inputs[0].kind)) options.unit = kind->unit;
  return options;
}

/// Does the recipe list the classes of this output, of whatever kind it is?
bool lists_classes(const Section& output) {
  const auto kinds = possible_kinds(output);
  return std::any_of(kinds.begin(), kinds.end(), [&](const OutputKind* kind) {
    return !kind->listed.empty() && output.items.contains(kind->listed);
  });
}

/// Not all classes are among the first samples: where the recipe does not list them, those of the test set
/// are taken.
void take_classes_of_tests(Recipe& recipe) {
  if (!has_tests(recipe) || recipe.data.test.empty()) return;
  if (std::all_of(recipe.outputs.begin(), recipe.outputs.end(), lists_classes)) return;
  const Task tests = learn_task({recipe, open_test_source(recipe, false, "")});
  for (size_t i = 0; i < recipe.outputs.size(); ++i) {
    const Output& output = *tests.outputs[i];
    const std::string& key = output.kind().listed;
    if (!lists_classes(recipe.outputs[i]) && !key.empty() && !output.classes().empty())
      recipe.outputs[i].set(key, output.classes());
  }
}

void check_streamed(const Task& task, const Recipe& given) {
  for (const auto& input : task.inputs) {
    const std::string key = input_key(input->section());
    const InputKind& kind = input->kind();
    if (input->cuts() && given.inputs[0].kind.empty())
      fail<InputError>(
          "data.stream: how rows are cut from a stream must be known before: give {}.kind = \"{}\"", key,
          kind.name);
    if (!input->plans()) continue;
    const std::string without = input->without_plan();
    fail<InputError>(
        "data.stream: {} puts rows together by the lengths of all {}, which nobody knows of a stream: "
        "{}train without data.stream",
        key, kind.unit, without.empty() ? "" : fmt::format("make all rows of one length ({}), or ", without));
  }
}

/// So many samples are learnt from: what the shuffle buffer will hold anyhow need not be waited for twice; of
/// large ones fewer.
int64_t learnt_samples(const Task& task) {
  constexpr int64_t most = 5000, least = 64, memory = int64_t{256} << 20;
  int64_t bytes = 1;
  for (const optim::TensorSpec& spec : specs_of(task.fields(), 1, task.length())) bytes += spec.type.bytes();
  const int64_t buffer = std::max(data::stream_buffer(task.recipe.data.order), least);
  return std::min(buffer, std::clamp(memory / bytes, least, most));
}

}  // namespace

Opened open_streams(Recipe recipe, const std::string& encoding, std::vector<std::string>& notes) {
  if (encoding.empty()) take_classes_of_tests(recipe);
  Opened opened;
  TaskParts parts;
  const auto parts_by = [&](const std::shared_ptr<const data::Dataset>& samples) {
    const auto reading = [&](const Recipe& of) {
      return Reading{of, samples, {}, Reading::Share::all, true};
    };
    opened.task = encoding.empty() ? learn_task(reading(recipe)) : load_task(recipe, encoding);
    check_streamed(opened.task, recipe);
    return parts_of(opened.task, reading(opened.task.recipe), Purpose::training, true);
  };
  const auto make_parts = [&](const data::Dataset& head) {
    // The data set is gone when this returns, and no part keeps it.
    parts = parts_by({std::shared_ptr<void>(), &head});
    return parts.named;
  };
  auto streams = streams_of(recipe);
  data::StreamFeedOptions options = stream_options(recipe, streams.size());
  const int64_t epoch = options.epoch_samples;
  auto feed = data::stream_feed(std::move(streams), make_parts, std::move(options));
  // What columns hold is seen in more samples than one, also of a run that goes on.
  const auto first = feed->first_samples(learnt_samples(opened.task));
  parts = parts_by(first);
  feed->take_parts(parts.named);
  if (encoding.empty()) opened.training.first = first;
  opened.training.inputs = std::move(parts.inputs);
  opened.training.outputs = std::move(parts.outputs);
  opened.training.count = epoch;
  for (const std::string& line : feed->notes()) notes.push_back(line);
  for (std::string& line :
       count_notes(opened.task, feed->path(), fmt::format("a stream of {}", opened.task.unit())))
    notes.push_back(std::move(line));
  opened.training.feed = std::move(feed);
  return opened;
}

}  // namespace millrace::task
