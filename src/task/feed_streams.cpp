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

/// A part that another of the same fields takes the place of, once the task is learnt from more samples than
/// the feed was opened with. That happens before any sample is made.
class LearntPart final : public data::Part {
 public:
  explicit LearntPart(std::shared_ptr<const Part> first) : part_(std::move(first)) {}
  /// InputError where the samples turned out to be of another form than the first ones.
  void learn(std::shared_ptr<const Part> part, const std::string& path) {
    const auto now = part->fields(), before = part_->fields();
    const bool same = std::equal(now.begin(), now.end(), before.begin(), before.end(),
                                 [](auto& x, auto& y) { return x.name == y.name && x.type == y.type; });
    if (!same || part->stored_bytes() != part_->stored_bytes())
      fail<InputError>(
          "{}: samples at its beginning are of another form than those behind, so nothing can be learnt "
          "from a stream of them: index the data and train without data.stream",
          path);
    part_ = std::move(part);
  }

  std::span<const data::Field> fields() const override { return part_->fields(); }
  std::unique_ptr<Scratch> scratch() const override { return part_->scratch(); }
  size_t stored_bytes() const override { return part_->stored_bytes(); }
  bool keeps() const override { return part_->keeps(); }
  std::string read(const data::Dataset& from, int64_t index, const data::SampleKey* random, Scratch* scratch,
                   std::byte* stored) const override {
    return part_->read(from, index, random, scratch, stored);
  }
  bool read_run(const data::Dataset& from, int64_t first, int64_t count, std::byte* stored,
                size_t stride) const override {
    return part_->read_run(from, first, count, stored, stride);
  }
  void put(const std::byte* stored, const data::Row& row, Scratch* scratch,
           std::span<std::byte* const> arrays) const override {
    part_->put(stored, row, scratch, arrays);
  }
  void pad(const data::Row& row, std::span<std::byte* const> arrays) const override {
    part_->pad(row, arrays);
  }
  void finish(int64_t batch, int64_t length, std::span<std::byte* const> arrays) const override {
    part_->finish(batch, length, arrays);
  }
  bool only_copies() const override { return part_->only_copies(); }
  bool mixes() const override { return part_->mixes(); }
  float mix(std::span<std::byte* const> arrays, int64_t count, const data::SampleKey& batch,
            Scratch* scratch) const override {
    return part_->mix(arrays, count, batch, scratch);
  }
  int64_t memory() const override { return part_->memory(); }

 private:
  std::shared_ptr<const Part> part_;
};

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

/// Not all classes are among the first samples: where the recipe does not list them, those of the test set
/// are taken.
void take_classes_of_tests(Recipe& recipe) {
  if (!has_tests(recipe) || recipe.data.test.empty()) return;
  const auto listed = [](const Section& section) { return section.items.contains("classes"); };
  if (std::all_of(recipe.outputs.begin(), recipe.outputs.end(), listed)) return;
  const Task tests = learn_task({recipe, open_test_source(recipe, false, "")});
  for (size_t i = 0; i < recipe.outputs.size(); ++i) {
    const Output& output = *tests.outputs[i];
    if (!listed(recipe.outputs[i]) && output.settings().find("classes") && !output.classes().empty())
      recipe.outputs[i].set("classes", output.classes());
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
    if (input->plans())
      fail<InputError>(
          "data.stream: {} puts rows together by the lengths of all texts, which nobody knows of a stream: "
          "give each text a row of one length ({}.sequences = \"padded\"), or train without data.stream",
          key, key);
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
  std::vector<std::shared_ptr<LearntPart>> parts;
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
    TaskParts made = parts_by({std::shared_ptr<void>(), &head});
    parts.clear();
    for (data::NamedPart& named : made.named) {
      parts.push_back(std::make_shared<LearntPart>(std::move(named.part)));
      named.part = parts.back();
    }
    return made.named;
  };
  auto streams = streams_of(recipe);
  data::StreamFeedOptions options = stream_options(recipe, streams.size());
  const int64_t epoch = options.epoch_samples;
  auto feed = data::stream_feed(std::move(streams), make_parts, std::move(options));
  if (encoding.empty()) {
    opened.training.first = feed->first_samples(learnt_samples(opened.task));
    const TaskParts made = parts_by(opened.training.first);
    for (size_t i = 0; i < parts.size(); ++i) parts[i]->learn(made.named[i].part, feed->path());
  }
  size_t at = 0;
  for (size_t i = 0; i < opened.task.inputs.size(); ++i) opened.training.inputs.push_back(parts[at++]);
  for (const auto& output : opened.task.outputs)
    opened.training.outputs.push_back(output->from() ? nullptr : parts.at(at++));
  opened.training.count = epoch;
  for (const std::string& line : feed->notes()) notes.push_back(line);
  for (std::string& line :
       count_notes(opened.task, feed->path(), fmt::format("a stream of {}", opened.task.unit())))
    notes.push_back(std::move(line));
  opened.training.feed = std::move(feed);
  return opened;
}

}  // namespace millrace::task
