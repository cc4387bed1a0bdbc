// Trainings by passes over all samples: an optimiser that goes by the whole loss (optim/lbfgs.h), and the
// steps that measure it for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/feed.h>
#include <millrace/optim.h>
#include <millrace/settings.h>

#include "optim/lbfgs.h"
#include "task/task.h"

namespace millrace::train {

struct Checkpoint;

/// An epoch is a pass: at its beginning the parameters are put where the loss is to be measured, its steps
/// sum the gradient, at its end the optimiser is told. Every sample counts once in a pass and as much as any
/// other.
class Passes {
 public:
  /// `settings`: of train.optimizer. InputError where its state would not fit this machine, and for models
  /// whose loss is another in each pass (`step` shows it): those that draw random numbers or keep running
  /// statistics.
  Passes(const Settings& settings, nn::Module& model, const optim::TrainStep& step);

  /// What a step takes besides the feed's arrays: which of its rows count, of each output.
  static std::vector<data::Field> extra_fields(const task::Task& task, std::span<const data::Field> fields);
  /// Fills one of these. Each sample has the same weight in all steps: a batch that is not full gives sums
  /// over those that it has, divided by the size of a full one.
  static void fill(Array& counted, const data::FeedBatch& batch);

  void begin(optim::TrainStep& step);
  /// The mean loss, and the gradients that the step sums, of so many full batches.
  void end(const optim::TrainStep& step, double loss, double steps);
  /// Puts the best point measured so far into the model. False where it is there already.
  bool take_best();
  /// Has a pass been made, so that there is a point to come back to?
  bool begun() const { return lbfgs_.begun(); }
  bool over() const { return lbfgs_.state() != optim::Lbfgs::State::going; }
  /// The largest element of the gradient at the best point.
  double gradient() const { return lbfgs_.largest(); }
  /// How it ended, for people; `passes`: so many were made.
  std::string text(int64_t passes) const;

  void store(Checkpoint& into) const;
  void restore(const Checkpoint& from);

 private:
  void put(const std::vector<float>& point);
  /// Is it in the penalty?
  bool decays(const Array& parameter) const { return decay_all_ || parameter.shape().rank() > 1; }

  struct Own {
    std::string name;
    Array array;  // shares the model's memory
  };
  double weight_decay_, tolerance_;
  bool decay_all_;
  std::vector<Own> parameters_;
  optim::Lbfgs lbfgs_;
};

}  // namespace millrace::train
