// The loss of a batch as a graph that can be looked into.
#pragma once

#include <string>
#include <vector>

#include <millrace/graph.h>
#include <millrace/optim.h>

#include "ops/body.h"

namespace millrace::check {

/// A step's forward pass in training mode, recorded on symbols.
struct Recorded {
  /// Inputs: those of the step, the key of random numbers i64[2], parameters, buffers. Output: the loss.
  Graph graph;
  Value loss;
  std::vector<std::string> parameters;
  std::vector<char> trainable;  // of parameters
  int inputs = 0;               // of the step

  Value parameter(size_t i) const { return graph.inputs()[static_cast<size_t>(inputs) + 1 + i]; }
  /// Which nodes depend on one of these values.
  std::vector<char> reached_from(std::span<const Value> from) const { return ops::reached_from(graph, from); }
  /// Which nodes the loss depends on.
  std::vector<char> needed() const { return ops::needed_by(graph, {loss}); }
};

/// TypeError as TrainStep has it.
Recorded record(nn::Module& model, const std::vector<optim::TensorSpec>& inputs,
                const optim::StepFunction& loss);

}  // namespace millrace::check
