// Prediction by a model that has no recipe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "task/predict_model_file.h"

namespace millrace::cli {

struct PredictModelArguments {
  std::string model;
  std::vector<std::string> samples;
  std::string labels, precision;
  task::PicturePreparation pictures;
  task::PredictModelFileOptions file;  // `out`: empty where results are printed
  bool json = false;
};

/// The exit code.
int predict_model(PredictModelArguments arguments);

}  // namespace millrace::cli
