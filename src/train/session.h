// A model together with what it means: its recipe, classes and pictures.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <millrace/nn.h>
#include <millrace/optim.h>

#include "data/augment/augment.h"
#include "train/checkpoint.h"
#include "train/recipe.h"

namespace millrace::train {

struct Session {
  Recipe recipe;  // with data.mean and data.std
  std::vector<std::string> classes;
  data::Extent extent;                         // of the pictures
  nn::Model model;                             // takes pictures as u8 [batch, C, H, W], gives logits
  std::map<std::string, std::string> choices;  // of kernels, recorded so far
};

/// Builds the recipe's model and draws its parameters. InputError names the model, layer or shape that is wrong.
Session make_session(Recipe recipe, std::vector<std::string> classes, const data::Extent& extent);

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

/// Runs a session's model on pictures.
class Predictor {
 public:
  /// `tta` as in eval.tta: logits are averaged over changed copies of each picture. `precision` as in
  /// CompileOptions.
  Predictor(Session& session, std::string tta, const std::string& precision);
  /// Logits f32 [N, classes] of pictures u8 [N, C, H, W]; new kernel choices go to the session.
  Array logits(const Array& pictures);
  void use_tta(std::string tta) { tta_ = std::move(tta); }

 private:
  Session& session_;
  std::string tta_;
  optim::EvalStep step_;
};

/// The bytes of the model as .onnx: pictures u8 [batch, C, H, W] → logits, normalisation included.
std::string export_session(const Session& session);

}  // namespace millrace::train
