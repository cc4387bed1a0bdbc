#include "task/recipe_moved.h"

#include "base/format.h"

namespace millrace::task {
namespace {

struct MovedKey {
  const char* before;
  const char* now;  // a whole sentence's end
};

constexpr MovedKey moved_keys[] = {
    {"data.samples", "is now input.kind: \"picture\", \"table\", \"sound\", \"text\" or \"tokens\""},
    {"data.augment", "is now input.augment"},
    {"data.mix", "is now input.mix"},
    {"data.resize", "is now input.resize"},
    {"data.crop", "is now input.crop"},
    {"data.channels", "is now input.channels"},
    {"data.mean", "is now input.mean"},
    {"data.std", "is now input.std"},
    {"data.tokenizer", "is now input.tokenizer, with input.kind = \"text\""},
    {"data.text", "is now input.column"},
    {"data.sequences", "is now input.sequences"},
    {"data.length", "is now input.length"},
    {"data.separator", "is now input.separator"},
    {"data.spans", "is now input.masked, with input.kind = \"tokens\""},
    {"data.label", "is now output.column"},
    {"data.label_pattern", "is now output.pattern"},
    {"data.label_trim", "is now output.trim"},
    {"data.classes", "is now output.classes"},
    {"data.categories", "is now input.categories"},
    {"data.leave_out", "is now input.leave_out"},
    {"data.rate", "is now input.rate"},
    {"data.seconds", "is now input.seconds"},
    {"data.mels", "is now input.mels"},
    {"data.spec_augment", "is now input.spec_augment"},
    {"model.init", "is called train.init_from"},
    {"model.names", "is called train.init_names, a list of \"PATTERN NAME\""},
    {"model.lora", "is called train.lora"},
    {"train.loss", "is now output.loss"},
    {"eval.tta", "is now input.tta"},
    {"train.threads", "is no key any more: leave it out, and give --threads instead"},
};

}  // namespace

void refuse_moved_keys(const Items& items) {
  for (const auto& [name, raw] : items.values) {
    for (const MovedKey& key : moved_keys)
      if (name == key.before || name.starts_with(std::string(key.before) + "."))
        fail<InputError>("{}: {} {}", raw.where, key.before, key.now);
    if (name == "data.weights")
      fail<InputError>(
          "{}: data.weights is a table of the shares of several sources; the column of weights in the loss "
          "is data.sample_weight",
          raw.where);
  }
}

}  // namespace millrace::task
