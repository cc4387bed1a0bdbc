// The built-in architectures by name, with what a recipe can tell them: files here end with
// MILLRACE_ARCHITECTURE(name){…}.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/nn.h>
#include <millrace/settings.h>

#include "base/registry.h"
#include "nn/models/models.h"

namespace millrace::nn {

struct Architecture {
  std::string name, doc;
  /// What its inputs are: "picture" f32 [batch, channels, height, width] (spectrograms too), "tokens" i64
  /// [batch, length], "table" (numbers f32 [batch, columns], ids i64 [batch, columns]), or "" for others.
  std::string takes;
  /// Of width, depth, heads and dropout those that it has.
  std::vector<Setting> settings = {};
  /// It is fitted to all training data at once, not by steps: its module is a Fitted (fitted.h).
  bool fitted = false;
  /// What its weights are called in other programs' files, as rules of train.init_names.
  std::vector<std::string> foreign = {};
  /// It comes from a file of this ending (".onnx"): a recipe may name the file as its kind, which stands for
  /// this kind with the file as the setting that `file` names.
  std::string ending = {}, file = {};
  /// Of those: the files that such a file needs beside it, by their places in its folder. A run keeps copies.
  std::vector<std::string> (*beside)(const std::string& file) = nullptr;
  /// Sizes are those of `settings`, whatever ModelOptions says of them. InputError for what makes no model.
  /// `kind`: the name, by which functions of several kinds tell them apart.
  Model (*make)(const std::string& kind, const Settings& settings, const ModelOptions& options) = nullptr;
};

#define MILLRACE_ARCHITECTURE(NAME)              \
  extern const Architecture architecture_##NAME; \
  const Architecture architecture_##NAME

Registry<Architecture>& architectures();
/// The kind that comes from a file called so (Architecture::ending); null for other names.
const Architecture* architecture_of_file(std::string_view name);
/// Adds an architecture to those of the library. InputError.
const Architecture& register_architecture(const Architecture& kind);

namespace models {
// Declarations that several kinds share, and what they are usually.
Setting width_setting();
Setting depth_setting();
Setting heads_setting();
Setting dropout_setting();
Setting drop_path_setting();
/// The options with the sizes of the settings.
ModelOptions sized(ModelOptions options, const Settings& settings);
/// An architecture of tables, whose module is made of options and settings: of two classes, where the options
/// do not say.
template <typename Own>
Model table_model(const std::string& kind, const Settings& settings, const ModelOptions& given) {
  ModelOptions options = table_columns_of(sized(given, settings), kind);
  if (options.classes == 0) options.classes = 2;
  return {kind, std::make_shared<Own>(options, settings), inputs_of_table(options), Task::classes};
}
}  // namespace models

}  // namespace millrace::nn
