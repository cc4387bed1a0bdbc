#include "task/output.h"

#include <algorithm>

#include "base/format.h"
#include "base/suggest.h"
#include "task/recipe.h"

namespace millrace::task {

const OutputKind& Output::kind() const { return output_kinds().at(section_.kind); }

std::vector<Setting> common_output_settings() {
  return {{"column", "column of the targets; empty: found by its name or its values", std::string()},
          {"of", "name of the input whose tokens are predicted; empty: the only one", std::string()},
          {"weight", "of this output in the sum of all losses", 1.0, 0, 1e6},
          {"loss", "kind of loss (or a table of it: kind and its keys); empty: the usual one of the output",
           std::string()}};
}

ChosenLoss chosen_loss(const Section& section, const OutputKind& kind) {
  const std::string key = output_key(section) + ".loss";
  const auto place = [](const Section::Item& item) { return item.where.empty() ? "" : item.where + ": "; };
  std::string name = kind.loss, where;
  for (const char* written : {"loss", "loss.kind"})
    if (const auto item = section.items.find(written); item != section.items.end()) {
      const auto* text = std::get_if<std::string>(&item->second.value);
      if (!text)
        fail<InputError>("{}{} must be a text, not {}", place(item->second), key,
                         type_text(item->second.value));
      where = place(item->second);
      if (!text->empty()) name = *text;
    }
  std::vector<std::string> fitting;
  for (const LossKind* each : loss_kinds().all())
    if (std::find(each->outputs.begin(), each->outputs.end(), kind.name) != each->outputs.end())
      fitting.push_back(each->name);
  const LossKind* const loss = loss_kinds().find(name);
  if (!loss)
    fail<InputError>("{}{} = \"{}\": there is no such loss; did you mean '{}'? ({})", where, key, name,
                     nearest(name, fitting), fmt::join(fitting, ", "));
  if (std::find(fitting.begin(), fitting.end(), name) == fitting.end())
    fail<InputError>("{}{} = \"{}\" does not apply to an output of kind {}: choose one of {}", where, key,
                     name, kind.name, fmt::join(fitting, ", "));
  ChosenLoss chosen{loss, Settings(loss->settings)};
  for (const auto& [written, item] : section.items) {
    if (!written.starts_with("loss.") || written == "loss.kind") continue;
    try {
      chosen.settings.set(written.substr(5), item.value);
    } catch (const InputError& error) {
      fail<InputError>("{}{}.{}: {}", place(item), key, written.substr(5), error.what());
    }
  }
  return chosen;
}

std::pair<std::string, Tensor> accuracy_of(const Tensor& logits, const Tensor& targets) {
  return {"accuracy", cast(equal(argmax(logits, -1), targets), f32)};
}

}  // namespace millrace::task
