// Comparing compiled graphs with the reference back end.
#pragma once

#include <memory>
#include <span>
#include <string>

#include <millrace/optim.h>
#include <millrace/program.h>

namespace millrace::optim {

/// How far a training step is from what the reference back end makes of the same inputs.
struct StepDifference {
  /// The largest part of what rounding explains; more than 1: the step is wrong.
  double share = 0;
  int output = -1;   // of the step's graph, that with this share
  std::string what;  // what of it differs, and by how much
};

/// What the reference back end makes of one step's inputs.
class StepReference {
 public:
  /// `made` and `inputs` must outlive it.
  StepReference(const TrainGraph& made, std::span<const Array> inputs, const CompileOptions& tested);
  ~StepReference();
  StepReference(const StepReference&) = delete;
  StepReference& operator=(const StepReference&) = delete;

  /// Compares the outputs of `ran`, a program that ran `made` on `inputs`. Of parameters, buffers and the
  /// optimiser's state the changes are compared, each by its own size: their norm, their largest element, and
  /// how far all of them go the same way. What may be off is measured: the reference back end runs the step
  /// again with its products a little off (rounding.h), by as much as the precision rounds.
  StepDifference compare(const Program& ran);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Runs `graph` on both back ends with every float result of every node as an output, and describes the
/// first, in the graph's order, that differs by more than `tolerance` of its largest magnitude and what
/// rounding explains: operator, layer, type, by how much. Empty when none does.
std::string first_difference(const Graph& graph, std::span<const Array> inputs, const CompileOptions& tested,
                             double tolerance);

}  // namespace millrace::optim
