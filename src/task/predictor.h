// Runs a task's model.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/array.h>
#include <millrace/feed.h>
#include <millrace/optim.h>
#include <millrace/session.h>

#include "task/task.h"

namespace millrace::task {

/// In how many ways all inputs can be seen: each one's with each other's.
int views_of(const Task& task);

/// Whether the model may have other weights, or another calibration, in the next run. Those of one that is
/// trained are bound once, and a session runs it.
enum class Weights { changing, trained };

/// Precision is the recipe's; logits are calibrated as the outputs were when they were first asked for. New
/// kernel choices go to the task.
class Predictor {
 public:
  /// `views`: average the logits over the inputs' views (test-time augmentation).
  explicit Predictor(Task& task, bool views = false, Weights weights = Weights::changing);
  /// Logits f32 of each output for arrays as Task::fields() has them.
  std::vector<Array> logits(std::span<const Array> arrays, int64_t length = 0);
  /// The same of a feed's batch, which may have more arrays than the model takes.
  std::vector<Array> logits(const data::Feed& feed, const data::FeedBatch& batch);
  /// Compiles for such batches, of a length (0: of the only one).
  void prepare(const data::Feed& feed, int64_t length);
  void use_views(bool on) { views_ = on; }

 private:
  std::vector<Array> run(std::span<const Array> arrays, int64_t length);
  std::vector<Array> run_session(std::span<const Array> arrays);
  Task& task_;
  bool views_;
  std::string precision_;
  std::optional<Session> session_;                             // of a trained model
  std::map<int64_t, std::unique_ptr<optim::EvalStep>> steps_;  // by length
};

}  // namespace millrace::task
