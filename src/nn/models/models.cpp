#include "nn/models/models.h"

#include <algorithm>

#include "base/format.h"

namespace millrace::nn {

Model normalised(Model model, const std::vector<double>& mean, const std::vector<double>& deviation) {
  auto normalise = std::make_shared<Normalise>(mean, deviation);
  auto whole = std::make_shared<Sequential>();
  whole->append("normalise", normalise);
  whole->append("", model.module);
  model.module = whole;
  model.inputs[0].type.dtype = u8;
  if (model.fit)
    model.fit = [normalise, inner = model.fit](const Array& samples) {
      inner((*normalise)(samples).to_array());
    };
  return model;
}

namespace models {

Type batch_of(const Shape& sample, DType dtype) {
  for (const Dim& dim : sample)
    if (dim.factor() < 1)
      fail<InputError>("a sample of shape {} has no elements: every size must be at least 1", sample.str());
  Shape shape = {Dim::named("batch")};
  shape.insert(shape.end(), sample.begin(), sample.end());
  return {dtype, shape};
}

Shape picture_shape(const ModelOptions& options, const Shape& usual, const std::string& kind) {
  if (options.input.empty()) return usual;
  if (options.input.rank() != 3 || !options.input.is_static())
    fail<InputError>("{} takes pictures of shape [channels, height, width], not {}", kind,
                     options.input.str());
  batch_of(options.input);
  return options.input;
}

ModelOptions table_columns_of(ModelOptions options, const std::string& kind) {
  if (options.numbers < 0) fail<InputError>("a table cannot have {} columns of numbers", options.numbers);
  if (options.numbers == 0 && options.ids.empty()) options.numbers = usual_columns(options, kind);
  for (const int64_t ids : options.ids)
    if (ids < 1) fail<InputError>("each column of categories of a table needs ids, not {} of them", ids);
  return options;
}

std::vector<InputSpec> inputs_of_table(const ModelOptions& options) {
  std::vector<InputSpec> inputs;
  if (options.numbers > 0) inputs.push_back({"numbers", batch_of({options.numbers})});
  if (!options.ids.empty())
    inputs.push_back({"ids", batch_of({static_cast<int64_t>(options.ids.size())}, i64), 0,
                      static_cast<double>(*std::min_element(options.ids.begin(), options.ids.end()))});
  return inputs;
}

void check_table_inputs(std::span<const Tensor> inputs, bool numbers, bool ids) {
  const size_t wanted = (numbers ? 1 : 0) + (ids ? 1 : 0);
  if (inputs.size() != wanted)
    fail<TypeError>("the model of this table takes {} inputs ({}), {} are given", wanted,
                    !ids      ? "numbers"
                    : numbers ? "numbers and ids"
                              : "ids",
                    inputs.size());
}

DropPath::DropPath(double p) : p_(p) {
  if (!(p >= 0 && p < 1)) fail<InputError>("drop_path takes a probability in [0, 1), not {}", p);
}

Tensor DropPath::forward(const Tensor& x) {
  if (!training() || p_ == 0) return x;
  Shape each = {x.dim(0)};
  for (int64_t i = 1; i < x.rank(); ++i) each.push_back(1);
  return x * dropout(Tensor::ones(each), p_, next_random_key());
}

double drop_path_of(double last, int64_t i, int64_t blocks) {
  return blocks > 1 ? last * static_cast<double>(i) / static_cast<double>(blocks - 1) : last;
}

int64_t usual_columns(const ModelOptions& options, const std::string& kind) {
  if (options.numbers > 0) return options.numbers;
  if (options.input.empty()) return 14;
  if (options.input.rank() != 1 || !options.input.is_static())
    fail<InputError>("{} takes samples of shape [columns], not {}", kind, options.input.str());
  return options.input[0].size();
}

void append_conv_norm(Sequential& layers, int64_t in, int64_t out, int64_t kernel, const ConvOptions& options,
                      std::shared_ptr<Module> activation) {
  ConvOptions without_bias = options;
  without_bias.bias = false;
  layers.append(std::make_shared<Conv2d>(in, out, kernel, without_bias));
  layers.append(std::make_shared<BatchNorm>(out));
  if (activation) layers.append(std::move(activation));
}

std::shared_ptr<Sequential> shortcut_of(int64_t in, int64_t out, int64_t stride) {
  if (stride == 1 && in == out) return nullptr;
  auto shortcut = std::make_shared<Sequential>();
  append_conv_norm(*shortcut, in, out, 1, {.stride = stride}, nullptr);
  return shortcut;
}

}  // namespace models
}  // namespace millrace::nn
