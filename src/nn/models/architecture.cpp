#include "nn/models/architecture.h"

#include "base/format.h"

namespace millrace::nn {

namespace models {
#define KIND(NAME) extern const Architecture architecture_##NAME;
#include "generated/architectures.inc"
#undef KIND
}  // namespace models

namespace {

/// The kind's settings, with the sizes that the options give.
Settings settings_by(const Architecture& kind, const ModelOptions& options) {
  Settings settings(kind.settings);
  const auto give = [&](const char* name, SettingValue value) {
    if (!settings.find(name)) return;
    try {
      settings.set(name, std::move(value));
    } catch (const InputError& error) {
      fail<InputError>("the {} of the model '{}' {}", name, kind.name, error.what());
    }
  };
  if (options.width != 0) give("width", options.width);
  if (options.depth != 0) give("depth", options.depth);
  if (options.heads != 0) give("heads", options.heads);
  if (options.dropout != 0) give("dropout", options.dropout);
  return settings;
}

}  // namespace

Registry<Architecture>& architectures() {
  static Registry<Architecture> kinds("model", {
#define KIND(NAME) &models::architecture_##NAME,
#include "generated/architectures.inc"
#undef KIND
                                               });
  return kinds;
}

const Architecture* architecture_of_file(std::string_view name) {
  for (const Architecture* kind : architectures().all())
    if (!kind->ending.empty() && name.ends_with(kind->ending)) return kind;
  return nullptr;
}

const Architecture& register_architecture(const Architecture& kind) {
  return architectures().add(kind, {{"make", kind.make}});
}

std::vector<std::string> model_kinds() {
  std::vector<std::string> names;
  for (const Architecture* kind : architectures().all())
    if (kind->ending.empty()) names.push_back(kind->name);
  return names;
}

Model make_model(const std::string& name, const ModelOptions& options) {
  const Architecture* const kind = architectures().find(name);
  if (!kind) {
    const std::vector<std::string> known = model_kinds();
    fail<InputError>("there is no model '{}'{} ({})", name, did_you_mean(name, known),
                     fmt::join(known, ", "));
  }
  return kind->make(name, settings_by(*kind, options), options);
}

namespace models {

Setting width_setting() { return {"width", "of the embeddings", int64_t{128}, 1, 1 << 16}; }
Setting depth_setting() { return {"depth", "blocks, or layers", int64_t{4}, 1, 1000}; }
Setting heads_setting() { return {"heads", "heads of attention", int64_t{4}, 1, 1 << 12}; }
Setting dropout_setting() { return {"dropout", "share of values set to 0 in training", 0.0, 0, 0.9}; }
Setting drop_path_setting() {
  return {
      "drop_path",
      "stochastic depth: in training a sample goes without the last block's branches with this probability, "
      "without earlier ones' less often",
      0.0, 0, 0.9};
}

ModelOptions sized(ModelOptions options, const Settings& settings) {
  if (settings.find("width")) options.width = settings.integer("width");
  if (settings.find("depth")) options.depth = settings.integer("depth");
  if (settings.find("heads")) options.heads = settings.integer("heads");
  if (settings.find("dropout")) options.dropout = settings.number("dropout");
  return options;
}

}  // namespace models
}  // namespace millrace::nn
