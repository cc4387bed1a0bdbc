#include "task/predict.h"

#include <algorithm>

#include <millrace/feed.h>

#include "base/format.h"
#include "data/table/place.h"
#include "data/table/select.h"
#include "task/feed_parts.h"
#include "task/feeds.h"
#include "task/in_order.h"
#include "task/model.h"

namespace millrace::task {
namespace {

/// What became of a sample.
struct PredictedSample {
  std::vector<std::vector<float>> logits;  // of each output
  std::string why = {};                    // it has none; else empty
};
using InOrderOfSamples = InOrder<PredictedSample>;

/// `first`: the number of the feed's first sample.
void run_feed(Predictor& predictor, const Task& task, const data::Dataset& samples, data::Feed& feed,
              int64_t first, InOrderOfSamples& out) {
  const int64_t batches = feed.batches_per_epoch();
  for (int64_t b = 0; b < batches; ++b) {
    const data::FeedBatch& batch = feed.next();
    const std::vector<Array> logits = predictor.logits(feed, batch);
    for (size_t row = 0; row < static_cast<size_t>(batch.valid); ++row) {
      std::vector<std::vector<float>> own;
      const data::SampleRows group = samples.rows(batch.samples[row]);
      for (size_t k = 0; k < logits.size(); ++k) {
        const std::span<const float> all = logits[k].as<float>();
        const size_t width = all.size() / static_cast<size_t>(feed.batch_size());
        auto from = all.subspan(row * width, width);
        // Of a sample of several rows there is something at each; what pads it says nothing.
        if (group.table) from = from.first(group.rows.size() * static_cast<size_t>(task.outputs[k]->width()));
        own.emplace_back(from.begin(), from.end());
      }
      out.add(first + batch.samples[row], {std::move(own)});
    }
  }
  for (const data::BadSample& bad : feed.bad_samples()) out.add(first + bad.index, {{}, bad.why});
}

/// A feed needs one good sample. Where there is none, says so of each; else false.
bool all_bad(const Task& task, const std::shared_ptr<const data::Dataset>& samples, int64_t first,
             InOrderOfSamples& out) {
  const TaskParts parts = parts_of(task, {task.recipe, samples}, Purpose::prediction, false);
  std::vector<std::string> why;
  for (int64_t i = 0; i < samples->count(); ++i) {
    std::string fault;
    for (const data::NamedPart& named : parts.named) {
      std::vector<std::byte> stored(named.part->stored_bytes());
      if (fault.empty() && !stored.empty())
        fault = named.part->read(*samples, i, nullptr, named.part->scratch().get(), stored.data());
    }
    if (fault.empty()) return false;
    why.push_back(std::move(fault));
  }
  for (int64_t i = 0; i < samples->count(); ++i) out.add(first + i, {{}, why[static_cast<size_t>(i)]});
  return true;
}

/// `batch` 0: as for a test set of these samples.
void predict_part(Predictor& predictor, const Task& task, const std::shared_ptr<const data::Dataset>& samples,
                  int64_t batch, int64_t first, InOrderOfSamples& out) {
  TaskFeed set;
  try {
    set = open_predictions(task, samples, batch);
  } catch (const InputError&) {
    if (!all_bad(task, samples, first, out)) throw;
    return;
  }
  run_feed(predictor, task, *samples, *set.feed, first, out);
}

/// Takes the next argument, and those behind that can be opened with it. Of several inputs an argument is a
/// data set that has the columns of all.
OpenedArguments open_next(const Task& task, const std::vector<std::string>& arguments, size_t& next) {
  const Input& input = *task.inputs[0];
  const bool only = task.inputs.size() == 1;
  const std::string& argument = arguments[next++];
  if (only && input.is_sample(argument)) return {input.sample(argument), true, argument};
  std::vector<std::string> paths = {argument};
  while (only && input.together(argument) && next < arguments.size() && input.together(arguments[next]))
    paths.push_back(arguments[next++]);
  return {input.open(task.recipe, paths), false, argument};
}

/// Lists and patterns become paths.
std::vector<std::string> paths_of(const Task& task, const std::string& argument) {
  return task.inputs.size() == 1 && !task.inputs[0]->is_sample(argument) ? task.inputs[0]->paths(argument)
                                                                         : std::vector{argument};
}

}  // namespace

std::vector<OpenedArguments> open_arguments(const Task& task, const std::vector<std::string>& named) {
  std::vector<std::string> arguments;
  for (const std::string& argument : named)
    for (std::string& path : paths_of(task, argument)) arguments.push_back(std::move(path));
  std::vector<OpenedArguments> opened;
  for (size_t next = 0; next < arguments.size();) opened.push_back(open_next(task, arguments, next));
  return opened;
}

void predict_samples(Predictor& predictor, const Task& task, std::shared_ptr<const data::Dataset> samples,
                     const OnSample& on) {
  const Recipe& recipe = task.recipe;
  const int64_t count = samples->count();
  InOrderOfSamples out(count, [&](int64_t sample, const PredictedSample& each) {
    if (each.why.empty())
      on.predicted(sample, {each.logits.begin(), each.logits.end()});
    else
      on.failed(sample, each.why);
  });
  int64_t row_bytes = 1;
  for (const optim::TensorSpec& spec : specs_of(task.fields(), 1, task.length()))
    row_bytes += spec.type.bytes();
  // Whole batches, so that each is the one of evaluation.
  const int64_t most = std::min<int64_t>(recipe.data.cache_mb << 20, 256 << 20) / row_bytes;
  const int64_t part = std::max<int64_t>(1, most / recipe.eval.batch) * recipe.eval.batch;
  // Which texts share a batch depends on the lengths of all.
  if (task.length() > 0 || count <= part) {
    predict_part(predictor, task, samples, 0, 0, out);
    return;
  }
  for (int64_t first = 0; first < count; first += part)
    predict_part(predictor, task, data::slice(samples, first, std::min(part, count - first)),
                 recipe.eval.batch, first, out);
}

void predict_arguments(Predictor& predictor, const Task& task, const std::vector<std::string>& named,
                       const OnPrediction& on) {
  std::vector<std::string> arguments;
  for (const std::string& argument : named) try {
      const std::vector<std::string> paths = paths_of(task, argument);
      arguments.insert(arguments.end(), paths.begin(), paths.end());
    } catch (const Error& error) {
      on.failed(error.what());
    }
  for (size_t next = 0; next < arguments.size();) try {
      const size_t first = next;
      const OpenedArguments opened = open_next(task, arguments, next);
      const auto name = [&](int64_t sample) {
        return opened.sample ? arguments[first] : opened.samples->name(sample);
      };
      predict_samples(predictor, task, opened.samples,
                      {[&](int64_t sample, const auto& logits) {
                         on.predicted(name(sample), logits, opened.samples->rows(sample).rows);
                       },
                       [&](int64_t sample, const std::string& why) {
                         const std::string place =
                             opened.sample ? name(sample) : data::place_of(*opened.samples, sample);
                         on.failed(why.starts_with(place) ? why : fmt::format("{}: {}", place, why));
                       }});
    } catch (const Error& error) {
      on.failed(error.what());
    }
}

}  // namespace millrace::task
