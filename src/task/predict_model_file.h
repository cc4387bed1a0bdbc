// Predicting samples by a model without a recipe into a file, and again from where it was stopped.
#pragma once

#include <string>
#include <vector>

#include "task/model_rows.h"
#include "task/model_samples.h"
#include "task/predict_file.h"

namespace millrace::task {

struct PredictModelFileOptions : PredictTarget {  // progress is of files
  ModelRowOptions rows;
};

/// `arguments` as for ModelSamples::each(). Rows are in the samples' order, one a row of a batch: tables as
/// ModelRows::values() says, JSON lines as ModelRows::json(), .npy the results of the model's only output
/// behind each other, which stay in memory until all are there. What cannot be read or run has no row and
/// stands in OUT.bad.jsonl. Until the file is whole there is OUT.partial beside it. InputError, IoError.
PredictFileResult predict_model_file(const Session& session, const ModelSamples& samples,
                                     const std::vector<std::string>& arguments,
                                     const PredictModelFileOptions& options);

}  // namespace millrace::task
