// The kinds of inputs, outputs and losses, found when CMake configured.
#include "base/format.h"
#include "task/input.h"
#include "task/loss.h"
#include "task/output.h"

namespace millrace::task {

#define KIND(NAME) extern const InputKind NAME##_input;
#include "generated/inputs.inc"
#undef KIND

#define KIND(NAME) extern const OutputKind NAME##_output;
#include "generated/outputs.inc"
#undef KIND

#define KIND(NAME) extern const LossKind NAME##_loss;
#include "generated/losses.inc"
#undef KIND

Registry<InputKind>& input_kinds() {
#define KIND(NAME) &NAME##_input,
  static Registry<InputKind> kinds("kind of input", {
#include "generated/inputs.inc"
                                                    });
#undef KIND
  return kinds;
}

const InputKind& register_input(const InputKind& kind) {
  return input_kinds().add(kind, {{"recognise", kind.recognise}, {"learn", kind.learn}, {"load", kind.load}});
}

Registry<OutputKind>& output_kinds() {
#define KIND(NAME) &NAME##_output,
  static Registry<OutputKind> kinds("kind of output", {
#include "generated/outputs.inc"
                                                      });
#undef KIND
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
#define KIND(NAME) &NAME##_loss,
  static Registry<LossKind> kinds("loss", {
#include "generated/losses.inc"
                                          });
#undef KIND
  return kinds;
}

const LossKind& register_loss(const LossKind& kind) {
  return loss_kinds().add(kind, {{"make", kind.make}, {"outputs", !kind.outputs.empty()}});
}

}  // namespace millrace::task
