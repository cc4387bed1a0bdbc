// The kinds of inputs, outputs and losses, found when CMake configured.
#include "base/format.h"
#include "task/input.h"
#include "task/loss.h"
#include "task/output.h"

namespace millrace::task {

#include "generated/inputs.inc"
#include "generated/losses.inc"
#include "generated/outputs.inc"

Registry<InputKind>& input_kinds() {
  static Registry<InputKind> kinds("kind of input", {MILLRACE_FOUND_INPUTS});
  return kinds;
}

const InputKind& register_input(const InputKind& kind) {
  return input_kinds().add(kind, {{"recognise", kind.recognise}, {"learn", kind.learn}, {"load", kind.load}});
}

Registry<OutputKind>& output_kinds() {
  static Registry<OutputKind> kinds("kind of output", {MILLRACE_FOUND_OUTPUTS});
  return kinds;
}

const OutputKind& register_output(const OutputKind& kind) {
  if (!progress_metric_of(kind))
    fail<InputError>(
        "the kind of output '{}': none of its metrics ({}) is a mean over rows (MetricKind::of_rows), so "
        "that there is nothing to show while training runs; a metric of your own is registered first",
        kind.name, fmt::join(kind.metrics, ", "));
  return output_kinds().add(
      kind,
      {{"refuses", kind.refuses}, {"recognise", kind.recognise}, {"learn", kind.learn}, {"load", kind.load}});
}

Registry<LossKind>& loss_kinds() {
  static Registry<LossKind> kinds("loss", {MILLRACE_FOUND_LOSSES});
  return kinds;
}

const LossKind& register_loss(const LossKind& kind) {
  return loss_kinds().add(kind, {{"make", kind.make}, {"outputs", !kind.outputs.empty()}});
}

}  // namespace millrace::task
