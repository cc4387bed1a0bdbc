// A recipe at work: train, measure, predict, save, export; and what a loop of one's own is made of.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/evaluation.h>
#include <millrace/feed.h>
#include <millrace/metric.h>
#include <millrace/nn.h>
#include <millrace/optim.h>
#include <millrace/recipe.h>
#include <millrace/training.h>

namespace millrace {

/// What a model makes of samples.
struct Predictions {
  struct Output {
    std::string name;  // of [outputs.NAME]; "" of the only one
    Array logits;      // f32 [samples, width]
    /// f32 [samples, width]: probabilities of classes, or numbers in the target's own unit.
    Array values;
    std::vector<std::string> classes;  // what the columns stand for; empty where they are numbers
  };
  /// Those that could be read, in order: "photo.jpg", "people.csv#3", the text itself.
  std::vector<std::string> samples;
  std::vector<Output> outputs;
  std::vector<std::string> failed;  // a message for each that could not
};

/// A recipe with its data and its model, before, in or after a training. Moved, not copied. Recipes are
/// checked first: InputError says what is wrong with recipe, data or model and where; IoError what cannot be
/// read or written. Not for several threads at once.
class Run {
 public:
  /// Trains by a recipe, as `millrace train` does: the same recipe and data give the same weights, to the
  /// bit. `folder`: where the run is kept (it must not hold one); empty: runs/run-<n>. A training that the
  /// observer stops can be resumed. Error when the loss is not finite.
  static Run train(const task::Recipe& recipe, const std::filesystem::path& folder = {},
                   const train::Observer& observer = {});
  /// Goes on with a training that was stopped or killed, to the same bits as if it never had been. `sets`:
  /// those of the recipe that it was begun with (recipe.data.sets). InputError when one is missing, or is not
  /// what the run was begun with.
  static Run resume(const std::filesystem::path& folder, const train::Observer& observer = {},
                    const task::DataSets& sets = {});
  /// A run that is there, with the weights of its newest sound checkpoint; an older one where that is
  /// damaged, which observer.message hears. `changes` of its recipe: those that what is trained does not
  /// depend on ("input.tta=flip", "eval.metrics=[accuracy]"); InputError for others. `checkpoint`: another
  /// one, "best" (train.keep_best) or the number of its step. `sets`: data sets of the program that
  /// training(), tests() and evaluate() may need, as the recipe names them.
  static Run open(const std::filesystem::path& folder, const train::Observer& observer = {},
                  std::span<const std::string> changes = {}, const std::string& checkpoint = "",
                  const task::DataSets& sets = {});
  /// Looks at a recipe's data and draws the weights (train.seed), but trains nothing and writes nothing: for
  /// loops of one's own.
  static Run prepare(const task::Recipe& recipe, const train::Observer& observer = {});

  Run(Run&& other) noexcept;
  Run& operator=(Run&& other) noexcept;
  ~Run();

  /// With everything that the data decided.
  const task::Recipe& recipe() const;
  /// Of train(), resume() and open(), and after save(); else empty.
  const std::filesystem::path& folder() const;
  /// Of train() and resume().
  const train::Outcome& outcome() const;
  /// From arrays as samples are decoded to logits: what was learnt from the data (means, vocabularies) is
  /// part of its graph. Its parameters have the names that the architecture gives them (weights.h saves and
  /// loads them); steps of one's own update them in place.
  const std::shared_ptr<nn::Module>& model() const;

  // ---- loops of one's own

  /// Batches to train on: shuffled, changed at random as the recipe says (input.augment), made ahead by
  /// threads. Cursors as after a training of so many batches. Opened when it is first asked for.
  data::Feed& training();
  /// Batches of the recipe's test set, of what `data` names, or of these samples, in order, unchanged. Valid
  /// until it is asked for other data. InputError when the recipe has none.
  data::Feed& tests(const std::string& data = "");
  data::Feed& tests(const std::shared_ptr<const data::Dataset>& samples);
  /// The arrays of training(), as a TrainStep takes them; `length`: one of the feed's lengths(), where it has
  /// some.
  std::vector<optim::TensorSpec> step_inputs(int64_t length = 0);
  /// The recipe's loss of model() on those, and what training prints: the function of a TrainStep.
  optim::StepFunction step_function();

  // ---- what a model is for

  /// Measures the model on the recipe's test set, on labelled samples that `data` names, or on these, each in
  /// all the ways that the recipe wants (test-time augmentation). InputError when more samples are bad than
  /// data.most_bad allows.
  task::Evaluation evaluate(const std::string& data = "");
  task::Evaluation evaluate(const std::shared_ptr<const data::Dataset>& samples);
  /// Fits calibrations on labelled samples that were not trained on. From then on evaluate(), predict() and
  /// export_onnx() use them; a run with a folder keeps them there, for this checkpoint. InputError when the
  /// method applies to no output.
  std::vector<task::Calibrated> calibrate(const task::CalibrateOptions& options = {});
  /// A line for each output that is calibrated: "temperature 1.832".
  std::vector<std::string> calibrations() const;
  /// What the model makes of samples that need no targets: files that are one sample each, data of any format
  /// with many of them, or the samples themselves ("a text"). To the bit what evaluate() measures. InputError
  /// for models that predict at places (tokens).
  Predictions predict(const std::vector<std::string>& samples);
  /// The same of rows; columns are found by the names that they had in training, or by their kind.
  Predictions predict(const std::shared_ptr<const data::Dataset>& samples);
  /// Of models that predict the next token: goes on with a text by so many tokens, each the most probable
  /// one. InputError for others.
  std::string generate(const std::string& text, int64_t tokens);

  /// The model as .onnx: raw arrays of samples to logits and predictions of each output (docs/predict.md).
  /// `height`, `width`: of decoded pictures that the model is to bring to its size itself; 0: its own.
  /// `opset`: the version of ONNX's operators, from 13 to 25; 0: 17, or what the model needs. Returns what
  /// the user should know of it: arrays that got other names. InputError for operators that the version
  /// lacks.
  std::vector<std::string> export_onnx(const std::filesystem::path& path, int height = 0, int width = 0,
                                       int opset = 0);
  /// The weights as .safetensors, under the model's names; what adapters add (train.lora) is in them.
  void export_weights(const std::filesystem::path& path);
  /// Makes a run folder of it, which open() and the verbs take; `step`: how many were made. It cannot be
  /// resumed: a loop of one's own keeps its optimiser. InputError when the folder holds a run already.
  void save(const std::filesystem::path& folder, int64_t step = 0);

 private:
  struct State;
  explicit Run(std::unique_ptr<State> state);
  /// On what tests() has opened.
  task::Evaluation evaluate_tests();
  std::unique_ptr<State> state_;
};

}  // namespace millrace
