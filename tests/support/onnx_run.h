// An ONNX model run once for given inputs of any form.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <millrace/program.h>

#include "onnx/host_value.h"
#include "onnx/import/import.h"
#include "onnx/model.h"

namespace millrace::test {

struct Ran {
  std::vector<onnx::HostValue> outputs;
  /// Inputs that were told when the model was read, since sizes, or what is computed at all, depend on them:
  /// nodes that depend on nothing else were computed then, by the reference back end.
  std::vector<std::string> known;
  onnx::Imported imported;           // what was run
  std::vector<LaunchInfo> launches;  // of the compiled program
};

/// Imports a model for these inputs and runs it, compiled or (`reference`) by the reference back end.
/// InputError as onnx::import_model() throws, or when an input is missing.
Ran run_model(const onnx::Model& model, const std::map<std::string, onnx::HostValue>& inputs,
              bool reference = false);

}  // namespace millrace::test
