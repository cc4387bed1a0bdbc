// A model together with what it means: its recipe, its classes, and the pictures or texts that it takes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <millrace/nn.h>
#include <millrace/optim.h>

#include "data/augment/augment.h"
#include "data/codecs/pictures/extent.h"
#include "data/feed/feed.h"
#include "train/checkpoint.h"
#include "train/recipe.h"

namespace millrace::train {

struct Session {
  Recipe recipe;  // with data.mean and data.std
  std::vector<std::string> classes;
  std::vector<data::Field> inputs;             // what the model takes: the first arrays of its feeds
  data::Extent extent;                         // of pictures; else all 0
  int64_t length = 0;                          // of the longest rows of texts; else 0
  uint32_t tokenizer = 0;                      // digest of that of texts
  nn::Model model;                             // gives logits
  std::map<std::string, std::string> choices;  // of kernels, recorded so far
  std::string encoding = {};                   // of tables and sounds (arrays.h)
};

/// Builds the recipe's model of pictures, u8 [batch, C, H, W], and draws its parameters. InputError names the model, layer or shape that is wrong.
Session make_session(Recipe recipe, std::vector<std::string> classes, const data::Extent& extent);

/// The same of any other data: `model` is the recipe's, its parameters not drawn yet, which takes `inputs`. `length`: the longest
/// of Feed::lengths(). The logits must be […, `outputs`].
Session make_session(Recipe recipe, std::vector<std::string> classes, nn::Model model,
                     std::vector<data::Field> inputs, int64_t length, int64_t outputs);

/// The model of a run folder's newest sound checkpoint; `warnings` gets a line for each damaged one. InputError when the
/// run has no checkpoint yet.
Session load_session(const std::filesystem::path& run, std::vector<std::string>& warnings);

/// Parameters, buffers, classes, sizes and choices to and from a checkpoint. InputError when they do not fit.
void store_session(const Session& session, Checkpoint& checkpoint);
void restore_session(Session& session, const Checkpoint& checkpoint);
/// With the choices recorded so far; `memory` as in train.memory.
CompileOptions compile_options(const Session& session, const std::string& precision,
                               const std::string& memory = "");
/// Copies the checkpoint's tensor of that name; InputError when it is missing or of another type.
void restore_array(const Checkpoint& checkpoint, const std::string& name, Array& array);

/// How often test-time augmentation runs the model on each picture.
inline int tta_views(const std::string& tta) { return tta == "none" ? 1 : tta == "flip" ? 2 : 6; }

/// The arrays of a feed as a compiled step takes them; `batch` and `length` where they are not 0.
std::vector<optim::TensorSpec> specs_of(std::span<const data::Field> fields, int64_t batch, int64_t length);

/// Runs a session's model.
class Predictor {
 public:
  /// `tta` as in eval.tta: logits are averaged over changed copies of each picture. `precision` as in
  /// CompileOptions.
  Predictor(Session& session, std::string tta, const std::string& precision);
  /// Logits f32 [N, classes] of pictures u8 [N, C, H, W]; new kernel choices go to the session.
  Array logits(const Array& pictures);
  /// Logits f32 of a model's inputs, whose rows are as long as they can be.
  Array logits(std::span<const Array> inputs) { return run(inputs, 0); }
  /// Logits f32 of a batch: [batch, classes], or [batch, length, tokens].
  Array logits(const data::Feed& feed, const data::FeedBatch& batch);
  /// Compiles for such batches, of a length (0: of the only one).
  void prepare(const data::Feed& feed, int64_t length);
  void use_tta(std::string tta) { tta_ = std::move(tta); }

 private:
  /// One pass over arrays as the session's inputs are.
  Array run(std::span<const Array> inputs, int64_t length);

  Session& session_;
  std::string tta_, precision_;
  std::map<int64_t, std::unique_ptr<optim::EvalStep>> steps_;  // by length
};

/// The bytes of the model as .onnx: pictures u8 [batch, C, H, W] → logits, normalisation included; sounds
/// f32 [batch, samples] and numbers of tables f64 [batch, columns] (arrays.h); or arrays of the longest texts. `height` and `width`: of decoded pictures that the model brings to its size itself, as evaluation does; 0: the
/// model's own. InputError when it takes no pictures, or larger ones.
std::string export_session(const Session& session, int height = 0, int width = 0);

}  // namespace millrace::train
