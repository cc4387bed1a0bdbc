// millrace predict.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "task/model_samples.h"
#include "task/predict_file.h"

namespace millrace::cli {

struct PredictArguments {
  std::string model, checkpoint;
  std::vector<std::string> samples;
  int64_t top = 3, tokens = 0;
  bool json = false;
  // Of a model without a recipe.
  std::string labels, precision;
  task::PicturePreparation pictures;
  // Of predictions into a file; `out`: empty where they are printed.
  task::PredictTarget target;
  double threshold = 0;
  bool all = false;
};

/// Prediction by a model that has no recipe. The exit code.
int predict_model(const PredictArguments& a);

/// Runs a prediction into `out`, with a line that says how far it is; `unit`: of what its progress is. The
/// exit code: 0, or 1 where samples were bad, or it was stopped.
int show_prediction(const std::string& out, const std::string& unit,
                    const std::function<task::PredictFileResult(const task::PredictWatch&)>& predict);

}  // namespace millrace::cli
