// The kinds of inputs, outputs and losses, found when CMake configured.
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

Registry<OutputKind>& output_kinds() {
#define KIND(NAME) &NAME##_output,
  static Registry<OutputKind> kinds("kind of output", {
#include "generated/outputs.inc"
                                                      });
#undef KIND
  return kinds;
}

Registry<LossKind>& loss_kinds() {
#define KIND(NAME) &NAME##_loss,
  static Registry<LossKind> kinds("loss", {
#include "generated/losses.inc"
                                          });
#undef KIND
  return kinds;
}

}  // namespace millrace::task
