// predict -o FILE.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "task/predict_file.h"

namespace millrace::cli {

/// Runs a prediction into `out`, with a line that says how far it is; `unit`: of what its progress is. The
/// exit code: 0, or 1 where samples were bad, or it was stopped.
int show_prediction(const std::string& out, const std::string& unit,
                    const std::function<task::PredictFileResult(const task::PredictWatch&)>& predict);

/// Predicts all samples into a file, by show_prediction().
int predict_into_file(const std::string& run, const std::string& checkpoint,
                      const std::vector<std::string>& samples, task::PredictFileOptions options);

}  // namespace millrace::cli
