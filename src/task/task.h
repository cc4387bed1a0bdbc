// A task: named inputs, named outputs, and the model between them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/feed.h>
#include <millrace/nn.h>

#include "task/input.h"
#include "task/output.h"
#include "task/recipe.h"

namespace millrace::task {

class Network;

/// Movable, not copyable. Inputs and outputs have settled sections, which `recipe` repeats.
struct Task {
  Recipe recipe;
  std::vector<std::unique_ptr<Input>> inputs;
  std::vector<std::unique_ptr<Output>> outputs;
  std::shared_ptr<Network> network;            // null until make_network()
  std::map<std::string, std::string> choices;  // of kernels, recorded so far

  /// "pictures": the first input's samples.
  const char* unit() const;
  /// The longest rows of all inputs; 0 where none have a length.
  int64_t length() const;
  /// The arrays that the model takes (every input's fields(), with prefixes).
  std::vector<data::Field> fields() const;
  /// What was learnt from the data, as one JSON text, which load_task() reads: of each input and output its
  /// encoding.
  std::string encoding() const;
  /// The names of the metrics of evaluation: recipe.eval.metrics, or the outputs' default ones; of several
  /// outputs "NAME.METRIC".
  std::vector<std::string> metrics() const;
  /// InputError, about what is called `name`, when an output has nothing to tell of a row.
  void require_predictions(const std::string& name) const;
};

/// Learns from the training data: settles all sections of the recipe (kinds that it does not name are
/// recognised), makes inputs and outputs. InputError says what is wrong with recipe or data. `reading.recipe`
/// is the recipe to start from.
Task learn_task(const Reading& reading);
/// The same from a run's recipe and what encoding() wrote.
Task load_task(Recipe recipe, const std::string& encoding);

}  // namespace millrace::task
