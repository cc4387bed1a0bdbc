#include "base/format.h"
#include "base/word_settings.h"
#include "nn/layers/layer.h"

namespace millrace::nn {
namespace layers {

#include "generated/layers.inc"

Registry<LayerKind>& kinds() {
  static Registry<LayerKind> all("layer", {MILLRACE_FOUND_LAYERS});
  return all;
}

Setting channels_setting() { return {"CHANNELS", "of the result", int64_t{1}, 1, most_width}; }
Setting kernel_setting() { return {"KERNEL", "rows and columns of it", int64_t{1}, 1, most_size}; }
Setting stride_setting() {
  return {"stride", "from one place of the kernel to the next", int64_t{1}, 1, most_size};
}
Setting bias_setting() { return {"bias", "1: a number is added to each output; 0: not", int64_t{1}, 0, 1}; }

std::vector<Setting> pool_settings() {
  return {kernel_setting(),
          {"stride", "from one window to the next; 0: as wide as they are", int64_t{0}, 0, most_size},
          {"padding", "places on each side that do not count", int64_t{0}, 0, most_size}};
}

int64_t features_of(const Tensor& x, int axis) {
  if (!x.dim(axis).is_static())
    fail<InputError>("the input {} has no fixed number of features", x.type().str());
  return x.dim(axis).size();
}

void need_pictures(const Tensor& x) {
  if (x.rank() != 4)
    fail<InputError>("the input must be [batch, channels, height, width], not {}", x.type().str());
}

}  // namespace layers

std::vector<std::string> layer_kinds() {
  std::vector<std::string> usages;
  for (const LayerKind* kind : layers::kinds().all()) usages.push_back(usage_of(kind->name, kind->settings));
  return usages;
}

const LayerKind& register_layer(const LayerKind& kind) {
  return layers::kinds().add(kind, {{"make", kind.make}});
}

}  // namespace millrace::nn
