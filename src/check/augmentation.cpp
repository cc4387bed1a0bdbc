// Random changes that make another class of a sample.
#include <algorithm>
#include <limits>

#include "base/format.h"
#include "check/changes.h"
#include "check/check.h"
#include "check/context.h"
#include "data/table/select.h"
#include "task/feed_parts.h"

namespace millrace::check {
namespace {

/// Rows of numbers with their classes.
struct Samples {
  std::vector<std::vector<float>> rows;
  std::vector<int64_t> classes;
};

void add_rows(Samples& to, const Array& array, const std::vector<int64_t>& classes) {
  const int64_t rows = array.shape()[0].size(), width = array.count() / std::max<int64_t>(1, rows);
  for (size_t r = 0; r < classes.size(); ++r) {
    if (classes[r] < 0) continue;
    std::vector<float> row(static_cast<size_t>(width));
    for (int64_t i = 0; i < width; ++i)
      row[static_cast<size_t>(i)] = static_cast<float>(array.at(static_cast<int64_t>(r) * width + i));
    to.rows.push_back(std::move(row));
    to.classes.push_back(classes[r]);
  }
}

constexpr size_t most_samples = 1200;

/// Samples as evaluation sees them.
Samples plain_samples(const Context& context, size_t field) {
  const task::Task& task = *context.task();
  const auto some = data::sample_of(context.samples(), most_samples);
  const std::vector<int64_t> labels = task.outputs[0]->labels({task.recipe, some});
  Samples samples;
  if (labels.empty()) return samples;
  task::TaskFeed set = task::open_predictions(task, some, std::min<int64_t>(some->count(), 64));
  const size_t place = set.feed->field(task.fields()[field].name);
  for (int64_t i = 0; i < set.feed->batches_per_epoch(); ++i) {
    const data::FeedBatch& batch = set.feed->next();
    std::vector<int64_t> classes;
    for (int64_t r = 0; r < batch.valid && !batch.samples.empty(); ++r)
      classes.push_back(labels[static_cast<size_t>(batch.samples[static_cast<size_t>(r)])]);
    add_rows(samples, set.feed->array(batch, place), classes);
  }
  return samples;
}

/// Samples as training sees them.
Samples changed_samples(Context& context, size_t field) {
  const task::Task& task = *context.task();
  data::Feed& feed = *context.training()->feed;
  const size_t place = feed.field(task.fields()[field].name),
               target = feed.field(task.outputs[0]->prefix() + "target");
  Samples samples;
  for (int i = 0; i < 64 && samples.rows.size() < most_samples; ++i) {
    const data::FeedBatch& batch = feed.next();
    const Array targets = feed.array(batch, target);
    if (targets.dtype() != i64) return {};
    std::vector<int64_t> classes;
    for (int64_t r = 0; r < std::min<int64_t>(batch.valid, 256); ++r) classes.push_back(targets.int_at(r));
    add_rows(samples, feed.array(batch, place), classes);
  }
  return samples;
}

/// The mean of each class of half of the samples.
std::vector<std::vector<double>> centres_of(const Samples& samples, size_t classes) {
  std::vector<std::vector<double>> sums(classes, std::vector<double>(samples.rows[0].size()));
  std::vector<double> counts(classes);
  for (size_t s = 0; s < samples.rows.size(); s += 2) {
    const auto c = static_cast<size_t>(samples.classes[s]);
    for (size_t i = 0; i < samples.rows[s].size(); ++i) sums[c][i] += samples.rows[s][i];
    ++counts[c];
  }
  for (size_t c = 0; c < classes; ++c)
    for (double& x : sums[c]) x = counts[c] ? x / counts[c] : std::numeric_limits<double>::quiet_NaN();
  return sums;
}

/// How many are nearest to the mean of their own class, of every other one from `first` on.
double share_at_home(const Samples& samples, const std::vector<std::vector<double>>& centres, size_t first) {
  int64_t right = 0, count = 0;
  for (size_t s = first; s < samples.rows.size(); s += 2) {
    double least = std::numeric_limits<double>::infinity();
    size_t nearest = 0;
    for (size_t c = 0; c < centres.size(); ++c) {
      double sum = 0;
      for (size_t i = 0; i < centres[c].size(); ++i) {
        const double off = samples.rows[s][i] - centres[c][i];
        sum += off * off;
      }
      if (sum < least) {
        least = sum;
        nearest = c;
      }
    }
    right += static_cast<int64_t>(nearest) == samples.classes[s];
    ++count;
  }
  return count ? static_cast<double>(right) / static_cast<double>(count) : 0;
}

Finding measured_change(Context& context, size_t field) {
  const size_t classes = context.task()->outputs[0]->classes().size();
  const Samples plain = plain_samples(context, field), changed = changed_samples(context, field);
  if (plain.rows.size() < 50 || changed.rows.size() < 50 || plain.rows[0].size() != changed.rows[0].size())
    return passed("too few samples, or of other sizes, to measure it");
  const auto centres = centres_of(plain, classes);
  const double before = share_at_home(plain, centres, 1), after = share_at_home(changed, centres, 0),
               chance = 1 / static_cast<double>(classes);
  const double lost = before > chance ? std::max(0.0, (before - after) / (before - chance)) : 0;
  const std::string saw = fmt::format(
      "{} of samples as they are, and {} of changed ones, are nearest to the mean of their own class",
      share_text(before), share_text(after));
  return with_numbers(
      before > 2 * chance && lost > 0.45
          ? warned(saw,
                   "the changes may make one class of another: look at them (millrace data show --augment), "
                   "take smaller ones, and none that mirrors or turns what has a direction")
          : passed(saw),
      {{"before", before}, {"after", after}, {"lost", lost}});
}

Finding run_augmentation(Context& context) {
  const task::Task* task = context.task();
  if (!context.samples()) return not_for("no data: a model of C++, or a stream");
  std::vector<std::string> changes;
  for (const auto& input : task->inputs)
    for (const std::string& text : said_by(*input, "augment")) changes.push_back(text);
  if (changes.empty()) return not_for("training changes nothing at random");
  if (task->outputs[0]->classes().empty() || task->inputs.size() > 1 || task->outputs.size() > 1)
    return not_for("there are no classes that a change could exchange");
  const std::string classes = mirrored_classes(*task);
  Finding finding = passed("");
  if (!classes.empty() && any_has(changes, {"flip"}))
    finding =
        failed(fmt::format("samples are mirrored ({}), and the mirror image of {} may be of another class",
                           fmt::join(changes, ", "), classes),
               "take the flip out of input.augment: what has a direction keeps it");
  const bool measurable = !context.training()->feed->has_field("mix") &&
                          context.training()->feed->field(task->fields()[0].name) == 0;
  if (!measurable)
    return finding.verdict == Verdict::pass ? not_for("samples are mixed with each other") : finding;
  Finding measured = measured_change(context, 0);
  return finding.verdict == Verdict::pass ? measured : worse(finding, measured);
}

}  // namespace

MILLRACE_CHECK_KIND(augmentation){
    .name = "augmentation",
    .doc = "random changes that make another class of a sample",
    .matters = "a mirrored b is a d: a model that is told otherwise learns to tell neither",
    .place = 180,
    .run = run_augmentation,
};

}  // namespace millrace::check
