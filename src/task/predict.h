// Predicting samples whose targets are not known. They go through the very feeds, batch sizes and compiled
// steps that evaluation uses, so that a file's predictions are those that its evaluation is made of, to the
// last bit.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "task/predictor.h"
#include "task/task.h"

namespace millrace::task {

/// Of each sample once one of the two, in the order of the data set.
struct OnSample {
  /// Logits of each output.
  std::function<void(int64_t sample, const std::vector<std::span<const float>>& logits)> predicted;
  /// It cannot be read or decoded.
  std::function<void(int64_t sample, const std::string& why)> failed;
};
/// Goes through all samples, in parts that fit into data.cache_mb.
void predict_samples(Predictor& predictor, const Task& task, std::shared_ptr<const data::Dataset> samples,
                     const OnSample& on);

/// What an argument is, or several, opened.
struct OpenedArguments {
  std::shared_ptr<const data::Dataset> samples;
  bool sample = false;   // it is one itself
  std::string argument;  // the first one
};
/// All of them, those that may, together. InputError for the first one that cannot be opened.
std::vector<OpenedArguments> open_arguments(const Task& task, const std::vector<std::string>& arguments);

/// One argument of `predict` after the other: lists and patterns become paths, paths are opened (those that
/// may, together), samples are taken as they stand. `on` gets the name of each sample ("photo.jpg",
/// "people.csv#3", the text itself), the logits, and the numbers of its rows where a sample is made of
/// several; errors of one do not stop the others.
struct OnPrediction {
  std::function<void(const std::string& name, const std::vector<std::span<const float>>& logits,
                     std::span<const int64_t> rows)>
      predicted;
  std::function<void(const std::string& message)> failed;
};
void predict_arguments(Predictor& predictor, const Task& task, const std::vector<std::string>& arguments,
                       const OnPrediction& on);

}  // namespace millrace::task
