// What the built-in architectures share (nn/models/architecture.h).
#pragma once

#include <millrace/nn.h>

namespace millrace::nn::models {

/// The type of a batch of samples of the given shape.
Type batch_of(const Shape& sample, DType dtype = f32);
/// options.input, or `usual`; InputError unless it is [channels, height, width].
Shape picture_shape(const ModelOptions& options, const Shape& usual, const std::string& kind);
/// How many columns of numbers: options.numbers, else options.input [columns], else 14. InputError for
/// another shape.
int64_t usual_columns(const ModelOptions& options, const std::string& kind);
/// A convolution without bias, batch norm, and an activation.
void append_conv_norm(Sequential& layers, int64_t in, int64_t out, int64_t kernel, const ConvOptions& options,
                      std::shared_ptr<Module> activation);
/// The way around a residual block: a 1×1 convolution and batch norm where its output has another shape, else
/// null.
std::shared_ptr<Sequential> shortcut_of(int64_t in, int64_t out, int64_t stride);

}  // namespace millrace::nn::models
