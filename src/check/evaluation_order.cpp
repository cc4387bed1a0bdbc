// The order in which samples are evaluated must not matter.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "check/rows.h"
#include "data/table/select.h"
#include "task/feed_parts.h"
#include "task/predictor.h"

namespace millrace::check {
namespace {

constexpr int64_t most_evaluated = 256;

/// The outputs of each sample by its number among `samples`, of a data set that holds these in this order.
std::vector<std::vector<float>> outputs_of(Context& context, const task::Task& task,
                                           const std::shared_ptr<const data::Dataset>& from,
                                           const std::vector<int64_t>& samples, int64_t batch) {
  task::TaskFeed set = task::open_predictions(task, data::select(from, samples), batch);
  std::vector<std::vector<float>> rows(static_cast<size_t>(from->count()));
  for (int64_t i = 0; i < set.feed->batches_per_epoch(); ++i) {
    const data::FeedBatch& taken = set.feed->next();
    std::vector<Array> arrays;
    for (const data::Field& field : task.fields())
      arrays.push_back(set.feed->array(taken, set.feed->field(field.name)));
    const std::vector<Array> logits = context.outputs(arrays);
    for (int64_t r = 0; r < taken.valid; ++r) {
      if (taken.samples.empty()) continue;
      auto& row =
          rows[static_cast<size_t>(samples[static_cast<size_t>(taken.samples[static_cast<size_t>(r)])])];
      row.clear();
      for (const Array& output : logits) {
        const int64_t width = output.count() / output.shape()[0].size();
        const auto x = output.as<float>();
        row.insert(row.end(), x.begin() + r * width, x.begin() + (r + 1) * width);
      }
    }
  }
  return rows;
}

/// The most by which a sample's outputs differ, as a share of all outputs' size.
double most_change(const std::vector<std::vector<float>>& one, const std::vector<std::vector<float>>& other) {
  double most = 0, squares = 0;
  int64_t count = 0;
  for (const auto& row : one)
    for (const float x : row) {
      squares += static_cast<double>(x) * x;
      ++count;
    }
  const double size = count ? std::max(std::sqrt(squares / static_cast<double>(count)), 1e-6) : 1;
  for (size_t s = 0; s < one.size(); ++s)
    for (size_t i = 0; i < std::min(one[s].size(), other[s].size()); ++i)
      most = std::max(most, std::abs(static_cast<double>(one[s][i]) - other[s][i]) / size);
  return most;
}

Finding judged(double change, int64_t samples) {
  return with_numbers(
      change > 1e-4
          ? failed(fmt::format("{} samples evaluated backwards get other outputs, by up to {} of their size",
                               samples, short_number(change)),
                   "nothing may be kept from batch to batch or taken from neighbours: look at statistics, "
                   "recurrent states and caches that outlive a call, and at batch-leakage")
          : passed(fmt::format("{} samples evaluated forwards and backwards: the same outputs", samples)),
      {{"samples", samples}, {"change", change}});
}

/// Batches of a subject, first to last and back, their rows turned round.
Finding order_of_batches(Context& context) {
  const int64_t rows = context.rows();
  std::vector<int64_t> back(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) back[static_cast<size_t>(r)] = rows - 1 - r;
  const size_t count = context.task() ? 2 : context.subject().batches.size();
  std::vector<std::vector<float>> forwards(count), backwards(count);
  const auto append = [&](std::vector<float>& to, const std::vector<Array>& outputs, bool turned) {
    for (const Array& output : outputs) {
      const Array own = turned ? with_rows(output, back) : output;
      const auto x = own.as<float>();
      to.insert(to.end(), x.begin(), x.end());
    }
  };
  for (size_t i = 0; i < count; ++i)
    append(forwards[i], context.outputs(context.given(context.batch(i))), false);
  for (size_t i = count; i-- > 0;) {
    std::vector<Array> given = context.given(context.batch(i));
    for (Array& array : given) array = with_rows(array, back);
    append(backwards[i], context.outputs(given), true);
  }
  return judged(most_change(forwards, backwards), static_cast<int64_t>(count) * rows);
}

Finding run_evaluation_order(Context& context) {
  widen_weights(context);
  const task::Task* task = context.task();
  const auto samples = context.tests() ? context.test_samples() : context.samples();
  if (!samples || task::cuts_corpus(*task)) return order_of_batches(context);
  std::vector<int64_t> order(static_cast<size_t>(std::min(samples->count(), most_evaluated)));
  std::iota(order.begin(), order.end(), 0);
  const int64_t batch = std::min<int64_t>(std::ssize(order), context.rows());
  const auto forwards = outputs_of(context, *task, samples, order, batch);
  std::reverse(order.begin(), order.end());
  const auto backwards = outputs_of(context, *task, samples, order, batch);
  return judged(most_change(forwards, backwards), std::ssize(order));
}

}  // namespace

MILLRACE_CHECK_KIND(evaluation_order){
    .name = "evaluation-order",
    .doc = "samples are evaluated forwards and backwards: the same outputs",
    .matters = "a result that depends on the order of the test set is no property of the model",
    .place = 350,
    .run = run_evaluation_order,
};

}  // namespace millrace::check
