#include "task/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iterator>
#include <set>

#include "base/format.h"
#include "base/number_text.h"
#include "base/seconds_since.h"
#include "data/feed/part.h"
#include "eval/class_tally.h"
#include "task/generate.h"

namespace millrace::task {
namespace {

/// One output's part of an evaluation.
struct JudgedOutput {
  const Output* output;
  std::vector<std::string> names;  // of metrics, without the output's
  eval::Measurement measurement;
  eval::Measurement of_texts;  // what judges generated texts
  size_t field;                // of the targets
  double bytes = 0;            // of text that a target stands for
};

/// Does a metric's name belong to this output; what is it called without the output's name?
bool split_metric(const Output& output, const std::string& name, std::string& own) {
  const std::string prefix = output.prefix();
  if (!name.starts_with(prefix)) return false;
  own = name.substr(prefix.size());
  return own.find('.') == std::string::npos;
}

double bytes_of(const Output& output, const Task& task, const TaskFeed& set) {
  for (size_t i = 0; i < task.inputs.size(); ++i)
    if (task.inputs[i].get() == output.from() && set.inputs[i])
      return task.inputs[i]->bytes_per_target(*set.inputs[i]);
  return 0;
}

std::vector<JudgedOutput> judged_outputs(const Task& task, const TaskFeed& set,
                                         const std::vector<std::string>& metrics,
                                         int64_t groups = eval::Measurement::groups) {
  std::vector<JudgedOutput> all;
  std::set<std::string> found;
  for (const auto& output : task.outputs) {
    std::vector<std::string> names, texts;
    for (const std::string& name : metrics)
      if (std::string own; split_metric(*output, name, own)) {
        (eval::metric_kind(own).texts ? texts : names).push_back(own);
        found.insert(name);
      }
    all.push_back({output.get(), names, eval::Measurement(names, output->section().kind, groups),
                   eval::Measurement(texts, output->section().kind, groups),
                   set.feed->field(output->judged_field(*set.feed)), bytes_of(*output, task, set)});
  }
  for (const std::string& name : metrics)
    if (!found.contains(name))
      fail<InputError>(
          "eval.metrics: \"{}\" names no output; of several outputs a metric is NAME.METRIC, as {}", name,
          fmt::join(task.metrics(), ", "));
  return all;
}

/// Of a row of targets.
int64_t places_of(const data::Feed& feed, size_t field, const data::FeedBatch& batch) {
  const Type& type = feed.fields()[field].type;
  return static_cast<int64_t>(data::row_bytes(type, batch.length)) / type.dtype.bytes();
}

/// The results in the order in which the metrics were asked for.
std::vector<eval::Measured> in_order(const std::vector<JudgedOutput>& outputs,
                                     const std::vector<std::string>& metrics) {
  std::vector<eval::Measured> all;
  for (const JudgedOutput& each : outputs)
    for (const eval::Measurement* part : {&each.measurement, &each.of_texts})
      for (eval::Measured& measured : part->finalize()) {
        measured.name = each.output->prefix() + measured.name;
        all.push_back(std::move(measured));
      }
  const auto place = [&](const eval::Measured& measured) {
    return std::find(metrics.begin(), metrics.end(), measured.name);
  };
  std::stable_sort(all.begin(), all.end(), [&](const auto& x, const auto& y) { return place(x) < place(y); });
  return all;
}

/// Counts of the classes of each output, and who else wants to see the rows.
class JudgedRows {
 public:
  JudgedRows(std::vector<JudgedOutput>& outputs, const OnJudged& on_judged) : tallies_(outputs.size()) {
    for (size_t k = 0; k < outputs.size(); ++k) {
      const Output& output = *outputs[k].output;
      const bool few = !output.at_places() && !output.classes().empty() && output.width() <= most_reported;
      outputs[k].measurement.listen([this, k, few, &on_judged](const eval::Judged& judged, int64_t first) {
        if (few) tallies_[k].update(judged, first);
        if (on_judged) on_judged(k, judged, first);
      });
    }
  }
  std::vector<ClassReport> reports(const std::vector<JudgedOutput>& outputs) const {
    std::vector<ClassReport> reports;
    for (size_t k = 0; k < outputs.size(); ++k) {
      const Output& output = *outputs[k].output;
      if (auto classes = tallies_[k].finalize(); !classes.empty())
        reports.push_back({output.name(), output.classes(), std::move(classes), tallies_[k].confusion()});
    }
    return reports;
  }

 private:
  static constexpr int64_t most_reported = 20;
  std::vector<eval::ClassTally> tallies_;
};

/// Goes once through the set, from its beginning: use(batch, logits of each output, which rows count).
template <typename Use>
void each_batch(Predictor& predictor, TaskFeed& set, const std::function<void(int64_t, int64_t)>& progress,
                Use&& use) {
  data::Feed& feed = *set.feed;
  to_start(feed);
  CountedRows counted;
  std::vector<char> rows;
  const int64_t total = feed.batches_per_epoch();
  for (int64_t i = 0; i < total; ++i) {
    const data::FeedBatch& batch = feed.next();
    rows.assign(static_cast<size_t>(feed.batch_size()), 0);
    for (size_t row = 0; row < static_cast<size_t>(batch.valid); ++row)
      rows[row] = counted.counts(batch, row);
    use(batch, predictor.logits(feed, batch), rows);
    if (progress) progress(i + 1, total);
  }
}

/// Rows of the set from its beginning on, as the model takes them, as long as `use` wants more.
template <typename Use>
void each_row(const Task& task, TaskFeed& set, Use&& use) {
  data::Feed& feed = *set.feed;
  to_start(feed);
  for (int64_t i = 0; i < feed.batches_per_epoch(); ++i) {
    const data::FeedBatch& batch = feed.next();
    for (int64_t at = 0; at < batch.valid; ++at) {
      std::vector<Array> row;
      for (const data::Field& field : task.fields()) {
        const Array whole = feed.array(batch, feed.field(field.name));
        Shape one = whole.shape();
        one[0] = 1;
        Array own(whole.dtype(), one);
        std::memcpy(own.data(),
                    static_cast<const std::byte*>(whole.data()) + static_cast<size_t>(at) * own.bytes(),
                    own.bytes());
        row.push_back(std::move(own));
      }
      if (!use(row)) return;
    }
  }
}

/// Generates the second halves of rows of the set from the first ones, where metrics judge texts.
void judge_texts(Predictor& predictor, const Task& task, TaskFeed& set, std::vector<JudgedOutput>& outputs,
                 const std::function<void(int64_t, int64_t)>& progress) {
  for (JudgedOutput& each : outputs) {
    if (each.of_texts.kinds().empty()) continue;
    const Continuable* const input = each.output->from() ? each.output->from()->continuable() : nullptr;
    if (!input)
      fail<InputError>("eval.metrics: {} is of generated texts, and {} predicts no next tokens",
                       each.of_texts.kinds()[0]->name, output_key(each.output->section()));
    std::vector<std::vector<int32_t>> rows;
    const auto most = static_cast<size_t>(task.recipe.eval.generated);
    each_row(task, set, [&](std::span<const Array> row) {
      std::vector<int32_t> ids = input->ids_of(row);
      if (ids.size() >= 2) rows.push_back(std::move(ids));
      return rows.size() < most;
    });
    std::vector<std::string> generated, references;
    for (const std::vector<int32_t>& ids : rows) {
      const auto half = ids.begin() + static_cast<std::ptrdiff_t>(ids.size() / 2);
      references.push_back(input->decode({half, ids.end()}));
      generated.push_back(
          input->decode(most_probable_tokens(predictor, *input, {ids.begin(), half}, ids.end() - half)));
      if (progress) progress(static_cast<int64_t>(generated.size()), static_cast<int64_t>(rows.size()));
    }
    eval::Judged judged;
    judged.rows = static_cast<int64_t>(generated.size());
    judged.generated = generated;
    judged.references = references;
    each.of_texts.update(judged);
  }
}

}  // namespace

Evaluation evaluate(Predictor& predictor, const Task& task, TaskFeed& set,
                    const std::function<void(int64_t, int64_t)>& progress) {
  return evaluate(predictor, task, set, task.metrics(), progress);
}

Evaluation evaluate(Predictor& predictor, const Task& task, TaskFeed& set,
                    const std::vector<std::string>& metrics,
                    const std::function<void(int64_t, int64_t)>& progress, const OnJudged& on_judged,
                    const OnBatch& on_batch) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<JudgedOutput> outputs = judged_outputs(task, set, metrics);
  JudgedRows judged(outputs, on_judged);
  const data::Feed& feed = *set.feed;
  each_batch(predictor, set, progress,
             [&](const data::FeedBatch& batch, const auto& logits, const auto& rows) {
               if (on_batch) on_batch(batch, logits);
               for (size_t k = 0; k < outputs.size(); ++k)
                 outputs[k].output->judge(
                     logits[k].template as<float>(), batch.arrays[outputs[k].field],
                     outputs[k].output->at_places() ? places_of(feed, outputs[k].field, batch) : 0, rows,
                     outputs[k].bytes, outputs[k].measurement);
             });
  judge_texts(predictor, task, set, outputs, progress);
  // Rows of which several targets count are told by these.
  return {in_order(outputs, metrics),
          outputs.front().measurement.count(),
          seconds_since(begin),
          feed.path(),
          task.outputs.front()->from() ? "targets" : feed.unit(),
          judged.reports(outputs)};
}

std::vector<OutputMeasurement> measure_by_sample(Predictor& predictor, const Task& task, TaskFeed& set,
                                                 const std::vector<std::string>& metrics, int64_t groups,
                                                 const std::function<void(int64_t, int64_t)>& progress) {
  std::vector<std::string> of_rows;  // generating texts for two models is another matter
  std::copy_if(metrics.begin(), metrics.end(), std::back_inserter(of_rows),
               [](const std::string& name) { return !metric_of(name).texts; });
  std::vector<JudgedOutput> outputs = judged_outputs(task, set, of_rows, groups);
  for (JudgedOutput& each : outputs)
    if (!each.output->at_places()) each.measurement.keep_rows();
  const data::Feed& feed = *set.feed;
  int64_t seen = 0;  // of streams, whose samples have no numbers
  each_batch(predictor, set, progress,
             [&](const data::FeedBatch& batch, const auto& logits, const auto& rows) {
               for (size_t row = 0; row < static_cast<size_t>(batch.valid); ++row) {
                 const int64_t number = batch.samples.empty() ? seen++ : batch.samples[row];
                 for (size_t k = 0; k < outputs.size() && rows[row]; ++k) {
                   JudgedOutput& each = outputs[k];
                   const std::span<const float> all = logits[k].template as<float>();
                   const std::span<const std::byte> targets = batch.arrays[each.field];
                   const size_t wide = all.size() / rows.size(), bytes = targets.size() / rows.size();
                   const int64_t places = each.output->at_places() ? places_of(feed, each.field, batch) : 0;
                   each.measurement.at(number, 0);
                   each.output->judge(all.subspan(row * wide, wide), targets.subspan(row * bytes, bytes),
                                      places, {1}, each.bytes, each.measurement);
                 }
               }
             });
  std::vector<OutputMeasurement> made;
  for (JudgedOutput& each : outputs) made.push_back({each.output->prefix(), std::move(each.measurement)});
  return made;
}

std::string metric_text(const std::string& name, double value) {
  return metric_of(name).share && !std::isnan(value) ? fmt::format("{:.2f} %", 100 * value)
                                                     : number_text(value);
}

std::string undefined_text(const std::string& name) {
  const std::string& needs = metric_of(name).needs;
  return needs.empty() ? "not a number" : "not defined: it needs " + needs;
}

std::string metrics_text(const std::vector<eval::Measured>& metrics) {
  std::string text;
  for (const eval::Measured& each : metrics)
    text += fmt::format("{}{} {}", text.empty() ? "" : "  ", each.name, metric_text(each.name, each.value));
  return text;
}

const eval::MetricKind& metric_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  return eval::metric_kind(dot == std::string::npos ? name : name.substr(dot + 1));
}

}  // namespace millrace::task
