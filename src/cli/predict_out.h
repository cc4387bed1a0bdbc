// predict -o FILE.
#pragma once

#include <string>
#include <vector>

#include "task/predict_file.h"

namespace millrace::cli {

struct PredictOutOptions {
  std::string run, checkpoint;
  std::vector<std::string> samples;
  task::PredictFileOptions file;
};

/// Predicts all samples into a file, with a line that says how far it is. The exit code: 0, or 1 where
/// samples were bad, or it was stopped.
int predict_into_file(PredictOutOptions options);

}  // namespace millrace::cli
