// How a model is read that goes on being trained: what rules of operators need to know that behave otherwise
// in training.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <millrace/graph.h>

#include "onnx/model.h"

namespace millrace::onnx {

/// Asked for by ImportOptions::learning.
struct Learning {
  /// The graph of training steps: batch norms go by their batch, dropout drops. Else that of evaluation,
  /// where batch norms go by the running statistics and nothing is dropped, whatever the nodes say.
  bool training = false;
  /// Initialisers that become inputs of the graph, as f32: parameters, and running statistics.
  std::set<std::string> inputs = {};
  /// A value of the model's graph that is the graph's only input, instead of what the model takes; empty:
  /// none.
  std::string enter = {};
  /// Values of the model's graph that are its outputs, instead of the model's own.
  std::vector<std::string> outputs = {};
};

/// A batch norm of a training graph. Three outputs more, behind those asked for, are what it normalised, and
/// the mean and the variance (by the number of values) of each channel of that.
struct LearningNorm {
  std::string mean, variance;  // the inputs of the graph that are its running statistics
  double momentum = 0.1;       // running = (1 − momentum) · running + momentum · batch
};

/// What rules write down while a model is read like that.
struct LearningNotes {
  bool training = false;
  Value key;  // i64[2], of a training graph: what dropout draws by
  std::vector<LearningNorm> norms = {};
  std::vector<Value> statistics = {};  // of each norm: what it normalised, mean, variance
  /// Batch norms whose statistics are no initialisers: they stay as they are in evaluation.
  int64_t fixed_norms = 0;
};

/// What the outputs of a model that is to be trained on need.
struct Needed {
  std::set<std::string> values;
  std::set<const NodeProto*> nodes;
};
Needed needed_for(const GraphProto& graph, const Learning& learning);

}  // namespace millrace::onnx
