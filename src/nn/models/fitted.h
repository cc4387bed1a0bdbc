// Architectures that are fitted to all training data at once instead of learning by steps: naive Bayes,
// nearest neighbours, trees.
//
// What is learnt ends up in the buffers of an ordinary module, whose forward pass is a graph: so checkpoints,
// evaluation, prediction, calibration and export need nothing of it. How large these buffers are may depend
// on the data; of a module that is loaded, the checkpoint's arrays say it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <millrace/array.h>
#include <millrace/nn.h>

namespace millrace::nn {

/// Samples as the module's forward pass takes them, all at once.
struct FitRows {
  std::vector<Array> inputs;  // the first dimension are the rows
  /// Labels i64 [rows]; numbers, or 0 and 1 of labels, f32 [rows, width]. Of samples to test on what
  /// Output::judge() takes, which numbers to learn have lost digits of.
  Array targets;
  std::vector<float> weights;  // of each row; empty: all weigh 1
  int64_t count = 0;
  /// Of rankings: how many rows each query has, which stand one after the other. Empty: rows are samples.
  std::vector<int64_t> queries = {};

  int64_t samples() const { return queries.empty() ? count : static_cast<int64_t>(queries.size()); }
};

/// What the logits of a row stand for: one of so many classes (softmax), labels that hold or not (sigmoid),
/// numbers as they are; or its place among the rows of its query, which only derivatives of a loss tell.
enum class Predicted { classes, labels, numbers, ranks };

struct FitData {
  FitRows training, tests;  // no tests: a count of 0
  Predicted predicted = Predicted::classes;
  int64_t width = 1;  // of the logits
  uint64_t seed = 1;
  /// First and second derivatives of the loss by logits of all samples to train on, both f32 [rows, width],
  /// without the rows' weights; empty where the loss is the usual one: cross-entropy, or squares of errors.
  std::function<std::pair<Array, Array>(const Array& logits)> gradient = {};
};

/// One fitting under way. It goes by rounds, of which each is a step of the training; of most there is one.
class Fitting {
 public:
  virtual ~Fitting() = default;
  virtual int64_t rounds() const { return 1; }
  virtual void round() = 0;
  /// Puts what the first `rounds` rounds have learnt into the module's buffers. 0: nothing is known.
  virtual void store(int64_t rounds) = 0;
  /// Logits f32 [rows, width] of the samples to train or to test on after the rounds so far, where they are
  /// known at less than the cost of a prediction.
  virtual std::optional<Array> logits(bool /*tests*/) { return std::nullopt; }
  /// Goes on behind that many rounds, which the module has from a checkpoint, with the same bits.
  virtual void resume(int64_t /*rounds*/) {}
};

/// The module of such an architecture (Architecture::fitted).
class Fitted : public Module {
 public:
  /// The module must stay. InputError for data that it cannot be fitted to.
  virtual std::unique_ptr<Fitting> fit(FitData data) = 0;
  /// InputError where its buffers, which a checkpoint gave, do not hang together.
  virtual void check() const = 0;
};

namespace models {
/// Numbers f32 [batch, numbers] and ids as forward_many() gets them, as one f32 [batch, numbers + sum of
/// ids]: of each id as many columns as there are, of which one is 1.
Tensor table_columns(std::span<const Tensor> inputs, const ModelOptions& options);
int64_t table_width(const ModelOptions& options);

/// One round, in which the module learns all: its learn(data).
template <typename Own>
class OneRound final : public Fitting {
 public:
  OneRound(Own& model, FitData data) : model_(model), data_(std::move(data)) {}
  void round() override {}
  void store(int64_t rounds) override {
    if (rounds > 0) model_.learn(data_);
  }

 private:
  Own& model_;
  FitData data_;
};
}  // namespace models

}  // namespace millrace::nn
