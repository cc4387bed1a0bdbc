// Averages of the weights over a training, which are what is tested, predicted with and exported.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/feed.h>
#include <millrace/nn.h>

#include "task/task.h"

namespace millrace::optim {
class EvalStep;
}

namespace millrace::train {

struct Checkpoint;

/// By the names of parameters and buffers, in f32.
using Averaged = std::map<std::string, Array>;

/// While it lives the model has the averages, and the averages' memory what the model had.
class Exchanged {
 public:
  Exchanged(nn::Module& model, const Averaged& averages);
  ~Exchanged();
  Exchanged(const Exchanged&) = delete;
  Exchanged& operator=(const Exchanged&) = delete;

 private:
  std::vector<std::pair<Array, Array>> pairs_;
};

/// The mean of the weights at some steps (Izmailov et al., arXiv 1803.05407).
class WeightMean {
 public:
  /// Of all f32 parameters and buffers.
  explicit WeightMean(nn::Module& model);
  /// Takes the weights as they are now into the mean.
  void add();
  /// How many there are; what get() has of none means nothing.
  int64_t count = 0;
  Averaged& get() { return mean_; }

 private:
  nn::Module& model_;
  Averaged mean_;
};

/// Running statistics (of batch norms) as the weights are, which those of other weights do not fit.
class Statistics {
 public:
  /// `moving`: the buffers that a step of training changes.
  Statistics(task::Task& task, std::vector<data::Field> fields, std::set<std::string> moving, uint64_t seed);
  /// Compiles for batches of a length.
  void prepare(int64_t length);
  /// Sets the buffers to their mean over the next batches of the feed, which is put back to its place. An
  /// error leaves both as they were.
  void measure(data::Feed& feed, int64_t batches);

 private:
  std::vector<std::vector<double>> means(data::Feed& feed, int64_t batches);
  /// The buffers after a batch that begins with all of them at `start`.
  std::vector<std::vector<double>> after(const data::Feed& feed, const data::FeedBatch& batch, double start,
                                         int64_t number);
  std::vector<nn::Named> buffers_of_model();
  std::vector<Array> run(optim::EvalStep& step, std::span<const Array> arrays);

  task::Task& task_;
  std::vector<data::Field> fields_;
  std::set<std::string> moving_;
  uint64_t seed_;
  std::map<int64_t, std::unique_ptr<optim::EvalStep>> steps_;  // by length
};

/// Puts the averages that a checkpoint has into the model.
void use_averages(nn::Module& model, const Checkpoint& checkpoint);
/// How the tensors of both kinds of averages are called in checkpoints.
constexpr const char* kMovingAverage = "optimizer.ema.";
constexpr const char* kWeightMean = "average.";

}  // namespace millrace::train
