// How many dimensions operators need their inputs to have at least.
#pragma once

#include "onnx/import/call.h"

namespace millrace::onnx {

/// Refuses a node whose inputs have fewer dimensions than its rule relies on.
void check_ranks(const ImportCall& call);

}  // namespace millrace::onnx
