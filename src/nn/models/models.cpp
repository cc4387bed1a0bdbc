#include "nn/models/models.h"

#include <functional>

#include "base/format.h"
#include "base/suggest.h"

namespace millrace::nn {
namespace {

struct Kind {
  std::string name;
  Model (*make)(const std::string&, const ModelOptions&);
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> list = {{"resnet18", models::resnet},
                                         {"resnet50", models::resnet},
                                         {"resnet18_cifar", models::resnet},
                                         {"mobilenet_v2", models::mobilenet_v2},
                                         {"bert_base", models::transformer},
                                         {"bert_base_14", models::transformer},
                                         {"minilm", models::transformer},
                                         {"gpt_mini", models::transformer},
                                         {"gpt", models::text_transformer},
                                         {"encoder", models::text_transformer},
                                         {"bag", models::bag},
                                         {"dlrm", models::dlrm},
                                         {"mlp", models::mlp},
                                         {"lenet", models::lenet},
                                         {"lstm", models::lstm},
                                         {"airbench", models::airbench},
                                         {"convnet", models::convnet}};
  return list;
}

/// A model behind Normalise; its parameters keep their names.
class Normalised : public Module {
 public:
  Normalised(std::shared_ptr<Module> model, const std::vector<double>& mean,
             const std::vector<double>& deviation)
      : normalise_(make<Normalise>("normalise", mean, deviation)), model_(child("", std::move(model))) {}
  Tensor forward(const Tensor& x) override { return (*model_)(normalise_(x)); }
  Array normalise(const Array& x) { return normalise_(x).to_array(); }

 private:
  Normalise& normalise_;
  std::shared_ptr<Module> model_;
};

}  // namespace

std::vector<std::string> model_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  return names;
}

Model make_model(const std::string& name, const ModelOptions& options) {
  for (const Kind& kind : kinds())
    if (kind.name == name) return kind.make(name, options);
  const std::vector<std::string> names = model_kinds();
  fail<InputError>("there is no model '{}'; did you mean '{}'? (have {})", name, nearest(name, names),
                   fmt::join(names, ", "));
}

Model normalised(Model model, const std::vector<double>& mean, const std::vector<double>& deviation) {
  auto whole = std::make_shared<Normalised>(model.module, mean, deviation);
  model.module = whole;
  model.inputs[0].type.dtype = u8;
  if (model.fit)
    model.fit = [whole, inner = model.fit](const Array& samples) { inner(whole->normalise(samples)); };
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

void append_conv_norm(Sequential& layers, int64_t in, int64_t out, int64_t kernel, const ConvOptions& options,
                      std::shared_ptr<Module> activation) {
  ConvOptions without_bias = options;
  without_bias.bias = false;
  layers.append(std::make_shared<Conv2d>(in, out, kernel, without_bias));
  layers.append(std::make_shared<BatchNorm>(out));
  if (activation) layers.append(std::move(activation));
}

}  // namespace models
}  // namespace millrace::nn
