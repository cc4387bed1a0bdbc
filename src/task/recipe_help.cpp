// What recipes can say, as help text.
#include "base/format.h"
#include "nn/models/architecture.h"
#include "optim/kinds.h"
#include "task/input.h"
#include "task/loss.h"
#include "task/output.h"
#include "task/recipe.h"
#include "task/recipe_sections.h"
#include "task/toml_text.h"

namespace millrace::task {
namespace {

std::string key_help(const std::string& name, const std::string& doc, const std::string& usual,
                     const std::vector<std::string>& choices) {
  return fmt::format("  {:<30} {}\n  {:<30} default {}{}\n", name, doc, "", usual,
                     choices.empty() ? "" : fmt::format("; one of {}", fmt::join(choices, ", ")));
}

std::string table_help(Recipe& defaults, std::string_view table) {
  std::string text;
  for (const RecipeKey& key : recipe_keys())
    if (key.name.starts_with(table))
      text +=
          key_help(key.name, key.doc,
                   std::visit([](auto* slot) { return toml_text(*slot); }, key.slot(defaults)), key.choices);
  return text;
}

std::string settings_help(const std::string& prefix, const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& setting : settings)
    text += key_help(prefix + "." + setting.name, setting.doc, toml_text(setting.usual), setting.choices);
  return text;
}

template <typename Kind>
std::string kinds_help(const std::string& prefix, const Registry<Kind>& kinds) {
  std::string text;
  for (const Kind* kind : kinds.all())
    text += fmt::format("\n{} = \"{}\": {}\n{}", prefix.ends_with("loss") ? prefix : prefix + ".kind",
                        kind->name, kind->doc, settings_help(prefix, kind->settings));
  return text;
}

}  // namespace

std::string recipe_help() {
  Recipe defaults;
  std::string text = "[data]: where samples come from\n" + table_help(defaults, "data.");
  text +=
      "\n[input], or [inputs.NAME] for each of several: what the model is given. Without a kind it is found "
      "from the data.\n" +
      kinds_help("input", input_kinds());
  text +=
      "\n[output], or [outputs.NAME] for each of several: what the model is to give. Without a kind it is "
      "found from the data.\n" +
      settings_help("output", common_output_settings()) + kinds_help("output", output_kinds()) +
      kinds_help("output.loss", loss_kinds());
  text += "\n[model]: what is between them; [model.NAME] is the network of one of several inputs\n" +
          table_help(defaults, "model.") + kinds_help("model", nn::architectures());
  text += fmt::format("\nmodel.kind = \"combine\": joins the networks of several inputs\n{}",
                      settings_help("model", section_settings(SectionType::model, "combine")));
  text += "\n[train]\n" + table_help(defaults, "train.") + "\nOf each optimizer:\n" +
          settings_help("train.optimizer", optim::common_optimizer_settings()) +
          kinds_help("train.optimizer", optim::optimizer_kinds()) +
          kinds_help("train.schedule", optim::schedule_kinds());
  return text + "\n[eval]\n" + table_help(defaults, "eval.") + "\n[baseline]\n" +
         table_help(defaults, "baseline.");
}

}  // namespace millrace::task
