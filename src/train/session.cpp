#include "train/session.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "base/size_text.h"
#include "onnx/export.h"
#include "optim/model_scope.h"
#include "train/run_folder.h"

namespace millrace::train {
namespace {

std::vector<optim::TensorSpec> inputs_of(const Session& session) {
  const data::Extent& e = session.extent;
  return {{"pictures", {u8, {Dim::named("batch"), e.channels, e.height, e.width}}}};
}

std::vector<optim::NamedTensor> forward(nn::Module& model, std::span<const Tensor> inputs) {
  return {{"logits", model(inputs[0])}};
}

/// The pictures mirrored left to right.
Array flipped(const Array& pictures) {
  Array result(pictures.type());
  const int64_t width = pictures.shape().back().size(), rows = width ? pictures.count() / width : 0;
  const auto from = pictures.as<uint8_t>();
  auto to = result.as<uint8_t>();
  for (int64_t row = 0; row < rows; ++row)
    std::reverse_copy(from.begin() + row * width, from.begin() + (row + 1) * width, to.begin() + row * width);
  return result;
}

/// The pictures moved by (dy, dx) of ±1, the border filled by reflection.
Array shifted(const Array& pictures, int64_t dy, int64_t dx) {
  Array result(pictures.type());
  const auto sizes = pictures.shape().sizes();
  const int64_t height = sizes[2], width = sizes[3];
  const auto reflect = [](int64_t at, int64_t size) {
    return size == 1 ? 0 : at < 0 ? -at : at >= size ? 2 * size - 2 - at : at;
  };
  const auto from = pictures.as<uint8_t>();
  auto to = result.as<uint8_t>();
  for (int64_t plane = 0; plane < sizes[0] * sizes[1]; ++plane)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x)
        to[(plane * height + y) * width + x] =
            from[(plane * height + reflect(y + dy, height)) * width + reflect(x + dx, width)];
  return result;
}

}  // namespace

Session make_session(Recipe recipe, std::vector<std::string> classes, const data::Extent& extent) {
  Session session{std::move(recipe), std::move(classes), extent, {}, {}};
  const Shape picture{extent.channels, extent.height, extent.width};
  const auto& wanted = session.recipe.model;
  session.model = wanted.layers.empty()
                      ? nn::make_model(wanted.kind, {static_cast<int64_t>(session.classes.size()), picture})
                      : nn::make_layers(wanted.layers, picture);
  if (session.model.inputs.size() != 1 || session.model.inputs[0].type.shape.rank() != 4)
    fail<InputError>("the model '{}' does not take pictures", wanted.kind);
  std::vector<double> mean = session.recipe.data.mean, deviation = session.recipe.data.std;
  if (mean.size() != static_cast<size_t>(extent.channels))
    fail<InputError>("data.mean has {} numbers, the pictures have {} channels", mean.size(), extent.channels);
  session.model = nn::normalised(std::move(session.model), mean, deviation);
  session.model.module->initialise(static_cast<uint64_t>(session.recipe.train.seed));

  const Graph graph = optim::build_eval_graph(*session.model.module, inputs_of(session), forward, true);
  const Shape& logits = graph.type(graph.outputs()[0]).shape;
  if (logits.rank() != 2 || !(logits[1] == static_cast<int64_t>(session.classes.size())))
    fail<InputError>("{} gives {}, but there are {} classes: the model must end in [batch, {}]",
                     wanted.layers.empty() ? fmt::format("model.kind '{}'", wanted.kind)
                                           : fmt::format("the last layer, '{}',", wanted.layers.back()),
                     logits.str(), session.classes.size(), session.classes.size());
  return session;
}

Session load_session(const std::filesystem::path& path, std::vector<std::string>& warnings) {
  const RunFolder run = RunFolder::open(path);
  const auto loaded = load_newest_checkpoint(run.checkpoints());
  if (!loaded) fail<InputError>("{} has no checkpoint yet: train it first", path.string());
  warnings.insert(warnings.end(), loaded->warnings.begin(), loaded->warnings.end());
  const auto counter = [&](const std::string& name) {
    const auto found = loaded->checkpoint.counters.find(name);
    if (found == loaded->checkpoint.counters.end())
      fail<InputError>("{}: the counter '{}' is missing", loaded->path.string(), name);
    return static_cast<int>(found->second);
  };
  const data::Extent extent{counter("picture.channels"), counter("picture.height"), counter("picture.width")};
  Session session = make_session(load_recipe(run.recipe()), loaded->checkpoint.classes, extent);
  restore_session(session, loaded->checkpoint);
  return session;
}

CompileOptions compile_options(const Session& session, const std::string& precision,
                               const std::string& memory) {
  CompileOptions options;
  if (!memory.empty()) options.memory = static_cast<int64_t>(parse_bytes("train.memory", memory));
  options.precision = precision;
  options.exact = session.recipe.train.exact;
  options.choices = session.choices;
  return options;
}

void store_session(const Session& session, Checkpoint& checkpoint) {
  checkpoint.classes = session.classes;
  checkpoint.choices = session.choices;
  checkpoint.counters["picture.channels"] = session.extent.channels;
  checkpoint.counters["picture.height"] = session.extent.height;
  checkpoint.counters["picture.width"] = session.extent.width;
  for (const auto& list : {session.model.module->parameters(), session.model.module->buffers()})
    for (const nn::Named& named : list)
      checkpoint.tensors.emplace_back("model." + named.name, optim::value_of(named));
}

void restore_array(const Checkpoint& checkpoint, const std::string& name, Array& array) {
  const auto found = std::find_if(checkpoint.tensors.begin(), checkpoint.tensors.end(),
                                  [&](const auto& item) { return item.first == name; });
  if (found == checkpoint.tensors.end())
    fail<InputError>(
        "the checkpoint has no tensor '{}': the model, optimizer or train.precision of its run is another",
        name);
  if (found->second.type() != array.type())
    fail<InputError>("the checkpoint's '{}' is {}, the recipe's model wants {}{}", name,
                     found->second.type().str(), array.type().str(),
                     found->second.dtype() == array.dtype()
                         ? ""
                         : ": go on with the train.precision that the run was begun with");
  std::memcpy(array.data(), found->second.data(), static_cast<size_t>(array.bytes()));
}

void restore_session(Session& session, const Checkpoint& checkpoint) {
  session.choices = checkpoint.choices;
  if (session.recipe.train.precision == "bf16-pure") session.model.module->store_parameters(bf16);
  for (const auto& list : {session.model.module->parameters(), session.model.module->buffers()})
    for (const nn::Named& named : list) {
      Array array = optim::value_of(named);
      restore_array(checkpoint, "model." + named.name, array);
    }
}

Predictor::Predictor(Session& session, std::string tta, const std::string& precision)
    : session_(session),
      tta_(std::move(tta)),
      step_(session.model.module, inputs_of(session), forward, compile_options(session, precision)) {}

Array Predictor::logits(const Array& pictures) {
  Array sum;
  float weights = 0;
  const auto add = [&](const Array& input, float weight) {
    weights += weight;
    const Array result = step_.run(std::span(&input, 1))[0].converted(f32);
    if (sum.empty()) sum = Array(result.type());
    const auto from = result.as<float>();
    auto to = sum.as<float>();
    for (size_t i = 0; i < from.size(); ++i) to[i] += weight * from[i];
  };
  const auto add_both = [&](const Array& input, float weight) {
    add(input, weight);
    add(flipped(input), weight);
  };
  if (tta_ == "none")
    add(pictures, 1);
  else
    add_both(pictures, 1);
  if (tta_ == "shift") {  // as airbench does: weight ½ for each of two diagonal moves
    add_both(shifted(pictures, -1, -1), 0.5f);
    add_both(shifted(pictures, 1, 1), 0.5f);
  }
  for (const auto& [key, choice] : step_.program().choices()) session_.choices.emplace(key, choice);
  // The mean, so that probabilities are as sharp as those of one view.
  if (weights != 1)
    for (float& logit : sum.as<float>()) logit /= weights;
  return sum;
}

std::string export_session(const Session& session) {
  const Graph graph = optim::build_eval_graph(*session.model.module, inputs_of(session), forward, true);
  onnx::ExportOptions options;
  options.name = session.model.kind.empty() ? "layers" : session.model.kind;
  int at = 1;  // after the pictures
  for (const auto& list : {session.model.module->parameters(), session.model.module->buffers()})
    for (const nn::Named& named : list) options.weights[at++] = optim::value_of(named);
  options.metadata["classes"] = fmt::format("{}", fmt::join(session.classes, "\n"));
  return onnx::export_model(graph, options);
}

}  // namespace millrace::train
