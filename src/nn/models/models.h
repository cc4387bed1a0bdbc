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
/// The options of a table's model; where they name no columns, the usual numbers. InputError for columns that
/// none can have.
ModelOptions table_columns_of(ModelOptions options, const std::string& kind);
/// Numbers f32 [batch, columns] and ids i64 [batch, columns], those of both that the options have.
std::vector<InputSpec> inputs_of_table(const ModelOptions& options);
/// TypeError unless there is a tensor for each of them.
void check_table_inputs(std::span<const Tensor> inputs, bool numbers, bool ids);
/// A convolution without bias, batch norm, and an activation.
void append_conv_norm(Sequential& layers, int64_t in, int64_t out, int64_t kernel, const ConvOptions& options,
                      std::shared_ptr<Module> activation);
/// Stochastic depth (Huang et al., arXiv 1603.09382) at the end of a residual branch: in training each sample
/// goes without the branch with probability p, and the others have it 1 / (1 − p) times, so that evaluation,
/// which always has it, is the mean.
class DropPath : public Module {
 public:
  explicit DropPath(double p);
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
};
/// The p of block `i` of so many: grows in equal steps up to `last` of the last one.
double drop_path_of(double last, int64_t i, int64_t blocks);

/// The way around a residual block: a 1×1 convolution and batch norm where its output has another shape, else
/// null.
std::shared_ptr<Sequential> shortcut_of(int64_t in, int64_t out, int64_t stride);

}  // namespace millrace::nn::models
