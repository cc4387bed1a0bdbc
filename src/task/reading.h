// What inputs and outputs are told of the data when they are opened.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "task/recipe.h"

namespace millrace::task {

/// Progress of reading: (what, done, total).
using ReadProgress = std::function<void(const std::string& what, int64_t done, int64_t total)>;

/// The samples that something is learnt from, or made ready of.
struct Reading {
  const Recipe& recipe;
  /// The samples: all of a data set, or the first ones of a stream.
  std::shared_ptr<const data::Dataset> samples;
  /// Columns that outputs, weights and conditions name: no input takes these by itself.
  std::vector<std::string> taken = {};
  /// Of a corpus that is cut for testing (data.test_share): which part of it the samples are to be.
  enum class Share { all, train, test } share = Share::all;
  bool streamed = false;
  ReadProgress progress = nullptr;
  /// The class of each sample, and the classes, where data.order is one by class: for inputs that decide on
  /// the rows of an epoch.
  std::vector<int64_t> labels = {};
  std::vector<std::string> classes = {};
};

/// What a part is made for.
enum class Purpose { training, evaluation, prediction };

}  // namespace millrace::task
