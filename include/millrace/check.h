// What a careful practitioner looks at before training: of a recipe, or of a model and a loop of one's own.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/array.h>
#include <millrace/nn.h>
#include <millrace/optim.h>
#include <millrace/recipe.h>

namespace millrace::check {

enum class Verdict { pass, warn, fail, does_not_apply };
/// "pass", "warn", "fail", "does-not-apply"
const char* verdict_name(Verdict verdict);

/// What one check made of it. Texts are for people; `numbers` are those of `saw`, for programs.
struct Finding {
  std::string check = {}, group = {};  // "batch-leakage", "model"
  Verdict verdict = Verdict::pass;
  std::string saw = {};      // with numbers; of does_not_apply, why
  std::string matters = {};  // why one should care
  std::string advice = {};   // what to do; empty unless it warns or fails
  std::vector<std::pair<std::string, double>> numbers = {};
  double seconds = 0;  // that it took
};

/// A model of one's own and how it is trained. Checks of data need a recipe; of these, those of the model and
/// of the loop apply as far as what they need is given.
struct Subject {
  /// Makes the model with its weights drawn: the same each time. Called several times.
  std::function<std::shared_ptr<nn::Module>()> make;
  /// Inputs of a step; their sizes are those of `batches`. The first dimension of the first is the batch.
  std::vector<optim::TensorSpec> inputs;
  /// The scalar loss of a batch, as for a TrainStep.
  optim::StepFunction loss;
  /// Which of the inputs the model is given in evaluation, and which hold what is to be predicted; empty: all
  /// others.
  std::vector<size_t> given = {0}, targets = {};
  /// What the model makes of those that it is given; empty: model(inputs).
  optim::EvalFunction outputs = {};
  /// Batches of training: an array for each input. At least one; two or more tell more.
  std::vector<std::vector<Array>> batches;
  /// Empty: AdamW.
  std::shared_ptr<const optim::Optimizer> optimizer = {};
  double lr = 1e-3;
  /// Loss of a model that knows nothing but how often what occurs; NaN: not known.
  double ignorance = std::numeric_limits<double>::quiet_NaN();
  /// Outputs [batch, places, …] may depend on nothing behind their place, as where the next one is predicted.
  bool causal = false;
  /// Of given inputs, by their place in `given`: bool or u8 arrays of their shapes (of batches[0]), not 0
  /// where there is only padding, which no output may depend on. Arrays without memory: no padding.
  std::vector<Array> padding = {};
  /// The token that ends a sequence, which the targets must have; -1: there is none.
  int64_t end_token = -1;
};

struct Options {
  /// Names of checks; empty: all.
  std::vector<std::string> only = {};
  /// Only those of the data that need nothing compiled.
  bool quick = false;
  /// Before each check: its name, how many are done, of how many; and while data are read, what.
  std::function<void(const std::string& what, int64_t done, int64_t total)> progress = {};
};

/// A check by name.
struct Kind {
  std::string name, group;
  std::string doc;      // what it looks for
  std::string matters;  // why
};
/// All of them, in the order in which they run.
std::vector<Kind> kinds();

/// Runs the checks. Data is read and weights are drawn as by a training; nothing is written but temporary
/// files. InputError for names that are no checks, and for a recipe or subject that cannot be trained at all.
std::vector<Finding> check(const task::Recipe& recipe, const Options& options = {});
std::vector<Finding> check(const Subject& subject, const Options& options = {});

}  // namespace millrace::check
