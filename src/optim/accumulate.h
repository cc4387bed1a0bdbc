// A batch in parts, one after the other, whose gradients are summed within one step.
#pragma once

#include <vector>

#include <millrace/optim.h>

namespace millrace::optim {

/// The forward and backward pass of a step. The graph's inputs are those of the step: first the data.
struct Differentiated {
  Graph graph;
  std::vector<Value> means;      // loss and metrics
  std::vector<Value> buffers;    // what is to replace them
  std::vector<Value> gradients;  // of the trainable parameters
};

/// Where the inputs of a step stand.
struct StepInputs {
  int data, key, first_buffer;
};

/// The data inputs of one of `parts` parts. InputError when the batch, the first input's first dimension,
/// cannot be divided so, TypeError when a shape is not static.
std::vector<TensorSpec> part_inputs(const std::vector<TensorSpec>& whole, int64_t parts);

/// The same for a batch of `parts` times as many items: the parts come one after the other, so that their
/// activations need the memory of one. Means are averaged, gradients summed (the part's loss must already be
/// divided by `parts`), buffers handed from part to part, and every part draws random numbers of its own.
/// Data whose type is another in `whole` is cut along its first dimension.
Differentiated accumulate(const Differentiated& part, int64_t parts, const StepInputs& inputs,
                          const std::vector<TensorSpec>& whole);

}  // namespace millrace::optim
