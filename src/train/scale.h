// Trainings of several sizes, of the data or of the model, and what they say of larger ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "eval/scaling.h"
#include "task/recipe.h"

namespace millrace::train {

/// What is varied, and how often.
struct ScaleAxis {
  /// "data", or a whole number of the model, "model.width".
  std::string by = "data";
  /// Of what the recipe has, ascending; empty: usual_sizes().
  std::vector<double> sizes;
  int64_t seeds = 2;  // of each size but the whole data, which are trained on once

  bool of_data() const { return by == "data"; }
};
/// Of data 1/16 to 1, of a model 1/4 to 2.
std::vector<double> usual_sizes(const ScaleAxis& axis);

/// One of the trainings: a run in a folder that they have in common.
struct ScaleRun {
  double size = 1;  // times what the recipe has
  int64_t seed = 1;
  std::filesystem::path path;
  std::vector<std::string> changes;  // of the recipe
  double work = 1;                   // of one of the whole
};

/// The trainings, the smallest first. Small parts of the data get more epochs, so that each has at least a
/// quarter of the steps of the whole. InputError when the recipe cannot be scaled so.
std::vector<ScaleRun> scale_runs(const task::Recipe& recipe, const ScaleAxis& axis,
                                 const std::filesystem::path& folder);
/// Is it there, and finished?
bool is_finished(const ScaleRun& run);

/// The folder of the trainings, made where it is not there; InputError when it holds those of another recipe
/// or axis.
void claim_scale_folder(const std::filesystem::path& folder, const task::Recipe& recipe,
                        const ScaleAxis& axis);

/// What the finished ones say.
struct ScaleFinding {
  std::string metric;
  bool share = false, higher_is_better = false;
  std::vector<ScaleRun> runs;            // those that are finished
  std::vector<eval::ScalePoint> points;  // of each: its error is 1 less the metric where higher is better
  std::vector<std::string> unfinished;   // that still learned when they ended, a line each
  std::vector<std::string> small;        // whose parts did not fill the recipe's batch, a line each
  /// The metric of an error.
  double metric_of(double error) const { return higher_is_better ? 1 - error : error; }
};
/// `metric`: of the test; empty: the first that the recipe reports. `batch`: of the recipe. InputError when
/// no training is finished, or nothing was tested.
ScaleFinding read_scale(const std::vector<ScaleRun>& runs, const std::string& metric, int64_t batch);

}  // namespace millrace::train
