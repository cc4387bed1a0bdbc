// The built-in architectures, one file each family.
#pragma once

#include <millrace/nn.h>

namespace millrace::nn::models {

Model resnet(const std::string& kind, const ModelOptions& options);
Model mobilenet_v2(const std::string& kind, const ModelOptions& options);
Model transformer(const std::string& kind, const ModelOptions& options);
Model text_transformer(const std::string& kind, const ModelOptions& options);
Model bag(const std::string& kind, const ModelOptions& options);
Model dlrm(const std::string& kind, const ModelOptions& options);
Model mlp(const std::string& kind, const ModelOptions& options);
Model lstm(const std::string& kind, const ModelOptions& options);
Model lenet(const std::string& kind, const ModelOptions& options);
Model airbench(const std::string& kind, const ModelOptions& options);
Model convnet(const std::string& kind, const ModelOptions& options);

/// The type of a batch of samples of the given shape.
Type batch_of(const Shape& sample, DType dtype = f32);
/// options.input, or `usual`; InputError unless it is [channels, height, width].
Shape picture_shape(const ModelOptions& options, const Shape& usual, const std::string& kind);
/// A convolution without bias, batch norm, and an activation.
void append_conv_norm(Sequential& layers, int64_t in, int64_t out, int64_t kernel, const ConvOptions& options,
                      std::shared_ptr<Module> activation);

}  // namespace millrace::nn::models
