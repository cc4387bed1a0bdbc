#include <algorithm>

#include "nn/layers/layer.h"

namespace millrace::nn {
namespace layers {

#define KIND(NAME) extern const LayerKind layer_##NAME;
#include "generated/layers.inc"
#undef KIND

Registry<LayerKind>& kinds() {
  static Registry<LayerKind> all("layer", {
#define KIND(NAME) &layer_##NAME,
#include "generated/layers.inc"
#undef KIND
                                          });
  return all;
}

const LayerKind& kind_of(const LayerLine& line) {
  const LayerKind* const kind = kinds().find(line.name);
  if (!kind)
    line.error(
        fmt::format("there is no layer '{}'{}", line.name, did_you_mean_or_list(line.name, kinds().names())));
  if (line.numbers.size() > kind->most_numbers)
    line.error(fmt::format("usage: {} {}", kind->name, kind->usage));
  for (const auto& [key, value] : line.options)
    if (std::find(kind->options.begin(), kind->options.end(), key) == kind->options.end())
      line.error(fmt::format("there is no option '{}'; usage: {} {}", key, kind->name, kind->usage));
  return *kind;
}

}  // namespace layers

std::vector<std::string> layer_kinds() {
  std::vector<std::string> usages;
  for (const LayerKind* kind : layers::kinds().all())
    usages.push_back(kind->usage.empty() ? kind->name : kind->name + " " + kind->usage);
  return usages;
}

const LayerKind& register_layer(const LayerKind& kind) {
  return layers::kinds().add(kind, {{"make", kind.make}});
}

}  // namespace millrace::nn
