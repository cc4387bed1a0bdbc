// A task's model as a graph from arrays to answers: what is exported, and what sessions run.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <millrace/graph.h>
#include <millrace/optim.h>
#include <millrace/session.h>

#include "task/task.h"

namespace millrace::task {

struct InferenceParts {
  bool weights_as_inputs = false;  // behind the arrays: parameters, then buffers; else constants
  bool predictions = true;         // and what the outputs' thresholds decide; else logits alone
  /// Instead of these: what is wanted of an output's calibrated logits.
  std::function<std::vector<optim::NamedTensor>(const Output& output, const Tensor& logits)> told = {};
};

/// From the arrays of Task::fields() to calibrated logits and predictions of each output. `length`: of rows;
/// 0: named where all inputs take rows of any length, else the longest.
Graph inference_graph(const Task& task, int64_t length, const InferenceParts& parts);

/// For a session, with the weights and the calibration that the task has while it compiles. The task must
/// stay where it is as long as the session. Precision and choices of kernels are the task's.
SessionModel session_model(const Task& task, const InferenceParts& parts = {});

}  // namespace millrace::task
