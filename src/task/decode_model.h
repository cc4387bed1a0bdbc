// A task's model for a decoder.
#pragma once

#include <string>

#include <millrace/decoder.h>

#include "task/task.h"

namespace millrace::task {

/// With the weights and the calibration that the task has now, in "fp32" or "bf16" ("": the recipe's). The
/// task must stay where it is. InputError when it does not predict the next token.
DecodeModel decode_model(const Task& task, const std::string& precision);

}  // namespace millrace::task
