// Models that are fitted to all samples at once, not by steps (nn/models/fitted.h): what a task hands them,
// and what is measured of them on the way.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/metric.h>

#include "nn/models/fitted.h"
#include "task/task.h"
#include "task/task_feed.h"

namespace millrace {
class CompiledFunction;
}

namespace millrace::task {

/// Does the recipe name such an architecture? (A kind that is not known yet is none.)
bool is_fitted(const Recipe& recipe);
/// The task's, after make_network(); null where its model learns by steps.
nn::Fitted* fitted_model(const Task& task);
/// InputError where the model is fitted: what is asked for ("a sweep of learning rates") is about steps.
void require_steps(const Recipe& recipe, const std::string& what);
/// Keys of [train] that the recipe sets and that mean nothing to a fitted model: a line for the user, or "".
std::string unused_keys(const Recipe& recipe);

/// All samples of the feeds, as the model takes them, through the inputs' graph in evaluation. The feed of
/// `tests` may be null. InputError for a task of several inputs or outputs, and for targets at places but
/// those of rankings, whose queries' rows stand one after the other.
nn::FitData fit_data(Task& task, TaskFeed& training, TaskFeed& tests,
                     const std::function<void(int64_t, int64_t)>& progress);

/// Loss and progress of logits of all samples to train on.
class FitLoss {
 public:
  FitLoss(const Task& task, const nn::FitRows& rows);
  /// The loss, and what is printed beside it ("accuracy").
  std::pair<double, std::pair<std::string, double>> operator()(const Array& logits) const;

 private:
  const Output* output_;
  nn::FitRows rows_;  // without inputs
  Array weights_;
  std::string name_;
  std::shared_ptr<const CompiledFunction> function_;  // null of rankings
};

/// The task's metrics of logits of all samples to test on; without intervals unless `intervals`.
std::vector<eval::Measured> measure_logits(const Task& task, const nn::FitRows& rows, const Array& logits,
                                           bool intervals);

}  // namespace millrace::task
