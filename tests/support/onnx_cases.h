// ONNX's own test cases: a folder with model.onnx and test_data_set_0/{input,output}_K.pb.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/onnx_run.h"

namespace millrace::test {

struct OnnxCase {
  std::string why;                 // empty: it passes
  std::vector<std::string> known;  // inputs that had to be told when the model was read
  std::vector<LaunchInfo> launches;
};

OnnxCase run_onnx_case(const std::filesystem::path& folder, bool reference);

/// The inputs of a model in a folder of input_K.pb, by name; those that have no file are left out.
std::map<std::string, HostValue> onnx_inputs(const onnx::Model& model, const std::filesystem::path& folder);

}  // namespace millrace::test
