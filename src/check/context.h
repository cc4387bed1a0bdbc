// What is being checked, and what several checks look at: made once, when it is first asked for.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/check.h>
#include <millrace/optim.h>

#include "check/record.h"
#include "task/feeds.h"
#include "task/task.h"

namespace millrace::check {

/// A layer's result, or a parameter, in the forward and backward pass of one batch.
struct Signal {
  std::string name;       // of the layer or parameter
  Array value, gradient;  // of the loss
  bool parameter = false;
  bool rectified = false;  // no element is below 0: what a ReLU leaves
};

/// How a short training went.
struct Learning {
  double first = 0, last = 0;  // mean loss of the first and of the last round through the batches
  int64_t steps = 0;
  double lr = 0;
  bool finite = true;
};

class Context {
 public:
  /// Reads the recipe's data as a training does, and draws its weights.
  Context(const task::Recipe& recipe, const Options& options);
  explicit Context(Subject subject);
  /// Of a training that has all this already, and whose feeds are its own: for quick checks, which ask for
  /// nothing below "the model". They must outlive it.
  Context(const task::Task& task, const task::TaskFeed& training, const task::TaskFeed& tests);
  ~Context();
  Context(const Context&) = delete;

  // ---- the data; null of a subject of C++

  const task::Task* task() const { return task_; }
  const task::TaskFeed* training() const { return training_; }
  /// Null where the recipe has no test set.
  const task::TaskFeed* tests() const { return tests_ && tests_->feed ? tests_ : nullptr; }
  /// Those to train on; null of streams, too.
  const std::shared_ptr<const data::Dataset>& samples() const {
    return training_ ? training_->samples : no_samples_;
  }
  /// Those to test on.
  const std::shared_ptr<const data::Dataset>& test_samples() const {
    return tests() ? tests_->samples : no_samples_;
  }
  /// Only a short look, at data alone?
  bool quick() const { return quick_; }
  /// As many samples as a check of a table looks at.
  int64_t most_samples() const { return quick_ ? 8'000 : 40'000; }

  // ---- the model

  const Subject& subject() const { return subject_; }
  const std::shared_ptr<nn::Module>& model();
  /// A recipe's model that is fitted to all samples at once: it has no steps, and nothing is drawn.
  bool fitted() const;
  /// Of a batch of the subject.
  int64_t rows() const { return rows_; }
  /// Batch `i` of training, as the step takes it.
  const std::vector<Array>& batch(size_t i = 0);
  /// Another one each time, as a training goes on; of a subject its batches over and over.
  const std::vector<Array>& fresh_batch();
  /// Of those the arrays that the model is given.
  std::vector<Array> given(const std::vector<Array>& batch) const;
  /// Weights and buffers as they were drawn.
  void reset();
  /// What the model makes of these, in evaluation, f32. Compiled once for each of their types.
  std::vector<Array> outputs(std::span<const Array> given);
  /// The graph of outputs(), once that was called.
  const Graph& evaluation_graph() const { return evals_.begin()->second->graph(); }

  /// The loss as a graph.
  const Recorded& recorded();
  /// The values of weights, as they are now, and of layers' results, and the gradients of the loss of batch 0
  /// in training mode by them.
  const std::vector<Signal>& signals();
  /// The compiled step; its optimiser's state is zero and the weights are as they were drawn.
  optim::TrainStep& step();
  /// The same as it is now.
  optim::TrainStep& current_step() { return *step_; }
  std::shared_ptr<const optim::Optimizer> optimizer();
  /// One step on a batch, at `lr`; the loss before it.
  double train(const std::vector<Array>& batch, double lr);
  /// What is found out once about short trainings (learning.h): their rate, and weights after one of new
  /// batches.
  struct Short {
    std::optional<double> rate;
    std::vector<Array> weights;
    Learning learning;
  } short_training;
  /// Copies of parameters and buffers as they are; and back.
  std::vector<Array> weights();
  void set_weights(const std::vector<Array>& to);

 private:
  void subject_of_task();
  void take_batches(size_t count);
  std::vector<Array> next_batch();

  Subject subject_;
  std::optional<task::Opened> opened_;
  std::optional<task::TaskFeed> opened_tests_;
  const task::Task* task_ = nullptr;
  const task::TaskFeed *training_ = nullptr, *tests_ = nullptr;
  const std::shared_ptr<const data::Dataset> no_samples_;
  std::shared_ptr<nn::Module> model_;
  std::vector<Array> drawn_;  // parameters, then buffers
  int64_t length_ = 0;        // of the rows of its batches
  int64_t rows_ = 0;
  std::vector<Array> fresh_;
  size_t freshly_ = 0;
  std::map<std::string, std::unique_ptr<optim::EvalStep>> evals_;  // by the types of what they take
  std::optional<Recorded> recorded_;
  std::vector<Signal> signals_;
  bool measured_ = false, quick_ = false;
  std::unique_ptr<optim::TrainStep> step_;
};

/// "0.123", "1.2e-07"
std::string short_number(double value);
/// Root of the mean square; 0 of none.
double rms(const Array& array);
/// "37 %", "0.4 %"
std::string share_text(double share);

}  // namespace millrace::check
