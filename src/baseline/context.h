// The data of a recipe as baselines look at it: opened once, targets as the outputs' parts give them.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/array.h>

#include "baseline/baseline.h"
#include "data/feed/part.h"
#include "eval/metric.h"
#include "task/feeds.h"

namespace millrace::baseline {

/// Rows of arrays of a part, by sample.
struct PartRows {
  std::vector<Array> arrays;  // of its fields, first dimension: the samples
  std::vector<char> good;     // whether the sample could be read
};
/// InputError for a part whose rows differ in length.
PartRows read_rows(const data::Part& part, const data::Dataset& from, std::span<const int64_t> samples);

class Context {
 public:
  Context(const task::Recipe& recipe, const Options& options);

  const task::Recipe& recipe() const { return recipe_; }
  const task::Task& task() const { return opened_.task; }
  task::TaskFeed& training() { return opened_.training; }
  task::TaskFeed& tests() { return tests_; }
  const std::shared_ptr<const data::Dataset>& samples(bool tests) const {
    return tests ? tests_.samples : opened_.training.samples;
  }
  const Options& options() const { return options_; }
  void progress(const std::string& what, int64_t done, int64_t of) const {
    options_.progress(what, done, of);
  }

  /// Targets of all samples, of an output that has them in columns.
  const PartRows& targets(size_t output, bool tests);
  /// What an output's numbers are as logits, and back: logit = (number − first) / second.
  std::pair<double, double> unit_of(size_t output, int64_t column) const;

  /// The metrics of logits f32 [test samples, width] of each output. `known`: rows that count; empty: all.
  std::vector<eval::Measured> judged(const std::vector<std::vector<float>>& logits,
                                     const std::vector<char>& known = {});
  /// Of logits f32 [width] that are the same for all rows, of each output, also where it has some at each
  /// place.
  std::vector<eval::Measured> judged_constant(const std::vector<std::vector<float>>& logits);
  /// Log probabilities that tell class `told[i]` of row i (−1: none, as often as each occurs): as sure as the
  /// answers are right on the samples to train on.
  std::vector<float> logits_of_answers(size_t output, const std::vector<int64_t>& train_told,
                                       const std::vector<int64_t>& test_told);
  /// How often each class of that output is the target in training.
  std::vector<double> shares(size_t output);

 private:
  std::vector<eval::Measured> finish(std::vector<eval::Measurement>& of_outputs) const;
  std::vector<eval::Measurement> measurements() const;
  /// What a part makes of all samples.
  PartRows all_rows(const data::Part& part, bool tests);

  task::Recipe recipe_;
  const Options& options_;
  task::Opened opened_;
  task::TaskFeed tests_;
  std::map<std::pair<size_t, bool>, PartRows> targets_;
};

/// What an output has one of for each sample: classes ("softmax"), labels, or numbers.
bool has_classes(const task::Output& output);

/// What training prints beside the loss: "accuracy"; "" where that is not one thing of each sample.
std::string progress_name(const task::Task& task);

Result not_for(std::string why);

}  // namespace millrace::baseline
