// Prediction by a model that has no recipe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "task/model_samples.h"

namespace millrace::cli {

struct PredictModelArguments {
  std::string model;
  std::vector<std::string> samples;
  std::string out, labels, precision;
  task::PicturePreparation pictures;
  int64_t top = 3;
  bool json = false;
};

/// The exit code.
int predict_model(const PredictModelArguments& arguments);

}  // namespace millrace::cli
