// The layers of make_layers() by name: each is a file here with MILLRACE_LAYER(name){…}.
#pragma once

#include <vector>

#include <millrace/nn.h>

#include "base/registry.h"

namespace millrace::nn::layers {

#define MILLRACE_LAYER(NAME)           \
  extern const LayerKind layer_##NAME; \
  const LayerKind layer_##NAME

Registry<LayerKind>& kinds();

/// The largest sizes of kernels and their like, and of channels and features.
constexpr double most_size = 1e6, most_width = 1e12;

// Settings that several have.
Setting channels_setting();
Setting kernel_setting();
Setting stride_setting();
Setting bias_setting();
std::vector<Setting> pool_settings();

/// The size of a dimension of the layer's input; InputError where it is not known.
int64_t features_of(const Tensor& x, int axis);
/// InputError where the input is none.
void need_pictures(const Tensor& x);

}  // namespace millrace::nn::layers
