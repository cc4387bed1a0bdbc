// The layers of make_layers() by name; files here hold those of a family, MILLRACE_LAYER(name){…}.
#pragma once

#include <string>

#include <millrace/nn.h>

#include "base/registry.h"

namespace millrace::nn::layers {

#define MILLRACE_LAYER(NAME)           \
  extern const LayerKind layer_##NAME; \
  const LayerKind layer_##NAME

Registry<LayerKind>& kinds();

/// The line's kind, with numbers and options that it takes. InputError names the line and the nearest name,
/// or the usage.
const LayerKind& kind_of(const LayerLine& line);
LayerLine parse_line(const std::string& text);

/// The size of a dimension of the layer's input, which must be known.
int64_t features_of(const LayerLine& line, const Tensor& x, int axis);
void need_pictures(const LayerLine& line, const Tensor& x);

}  // namespace millrace::nn::layers
