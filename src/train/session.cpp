#include "train/session.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/format.h"
#include "base/size_text.h"
#include "data/codecs/pictures/frame_graph.h"
#include "onnx/export.h"
#include "optim/model_scope.h"
#include "train/arrays.h"
#include "train/datasets.h"
#include "train/run_folder.h"
#include "train/texts.h"

namespace millrace::train {
namespace {

std::vector<optim::NamedTensor> forward(nn::Module& model, std::span<const Tensor> inputs) {
  return {{"logits", model(inputs)}};
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

/// Draws the parameters and checks what comes out.
Session ready(Session session, int64_t outputs) {
  session.model.module->initialise(static_cast<uint64_t>(session.recipe.train.seed));
  const auto specs = specs_of(session.inputs, 0, session.length);
  const Graph graph = optim::build_eval_graph(*session.model.module, specs, forward, true);
  const Shape& logits = graph.type(graph.outputs()[0]).shape;
  const auto& wanted = session.recipe.model;
  const bool tokens = session.classes.empty();
  if (logits.rank() != (tokens ? 3 : 2) || !(logits.back() == outputs))
    fail<InputError>("{} gives {}, but there are {} {}: the model must end in [batch, {}{}]",
                     wanted.layers.empty() ? fmt::format("model.kind '{}'", wanted.kind)
                                           : fmt::format("the last layer, '{}',", wanted.layers.back()),
                     logits.str(), outputs, tokens ? "tokens" : "classes", tokens ? "length, " : "", outputs);
  return session;
}

}  // namespace

std::vector<optim::TensorSpec> specs_of(std::span<const data::Field> fields, int64_t batch, int64_t length) {
  Bindings sizes;
  if (batch > 0) sizes["batch"] = batch;
  if (length > 0) sizes["length"] = length;
  std::vector<optim::TensorSpec> specs;
  for (const data::Field& field : fields)
    specs.push_back({field.name, {field.type.dtype, field.type.shape.specialise(sizes)}});
  return specs;
}

Session make_session(Recipe recipe, std::vector<std::string> classes, nn::Model model,
                     std::vector<data::Field> inputs, int64_t length, int64_t outputs) {
  return ready(
      {std::move(recipe), std::move(classes), std::move(inputs), {}, length, 0, std::move(model), {}},
      outputs);
}

Session make_session(Recipe recipe, std::vector<std::string> classes, const data::Extent& extent) {
  const Shape picture{extent.channels, extent.height, extent.width};
  const Type pictures{u8, {Dim::named("batch"), extent.channels, extent.height, extent.width}};
  Session session{std::move(recipe), std::move(classes), {{"pictures", pictures}}, extent, 0, 0, {}, {}};
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
  const auto outputs = static_cast<int64_t>(session.classes.size());
  return ready(std::move(session), outputs);
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
  Recipe recipe = load_recipe(run.recipe());
  Session session =
      has_arrays(recipe) ? make_array_session(std::move(recipe), loaded->checkpoint.encoding)
      : recipe.data.tokenizer.empty()
          ? make_session(std::move(recipe), loaded->checkpoint.classes,
                         {counter("picture.channels"), counter("picture.height"), counter("picture.width")})
          : make_text_session(std::move(recipe), loaded->checkpoint.classes);
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
  checkpoint.encoding = session.encoding;
  if (session.extent.channels > 0) {
    checkpoint.counters["picture.channels"] = session.extent.channels;
    checkpoint.counters["picture.height"] = session.extent.height;
    checkpoint.counters["picture.width"] = session.extent.width;
  } else {
    checkpoint.counters["text.tokenizer"] = session.tokenizer;
  }
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
  array.assign(found->second);
}

void restore_session(Session& session, const Checkpoint& checkpoint) {
  if (const auto digest = checkpoint.counters.find("text.tokenizer");
      digest != checkpoint.counters.end() && digest->second != session.tokenizer)
    fail<InputError>("{} is not the tokenizer that the run was begun with: its content has changed",
                     session.recipe.data.tokenizer);
  if (checkpoint.encoding != session.encoding)
    fail<InputError>("the data is not what the run was begun with: its columns are encoded in another way");
  session.choices = checkpoint.choices;
  if (session.recipe.train.precision == "bf16-pure") session.model.module->store_parameters(bf16);
  for (const auto& list : {session.model.module->parameters(), session.model.module->buffers()})
    for (const nn::Named& named : list) {
      Array array = optim::value_of(named);
      restore_array(checkpoint, "model." + named.name, array);
    }
}

Predictor::Predictor(Session& session, std::string tta, const std::string& precision)
    : session_(session), tta_(std::move(tta)), precision_(precision) {}

Array Predictor::run(std::span<const Array> inputs, int64_t length) {
  auto& step = steps_[length];
  if (!step)
    step = std::make_unique<optim::EvalStep>(session_.model.module,
                                             specs_of(session_.inputs, 0, length ? length : session_.length),
                                             forward, compile_options(session_, precision_));
  Array result = step->run(inputs)[0].converted(f32);
  for (const auto& [key, choice] : step->program().choices()) session_.choices.emplace(key, choice);
  return result;
}

Array Predictor::logits(const data::Feed& feed, const data::FeedBatch& batch) {
  std::vector<Array> arrays;
  const auto specs = specs_of(session_.inputs, feed.batch_size(), batch.length);
  for (size_t i = 0; i < specs.size(); ++i) {
    arrays.emplace_back(specs[i].type);
    if (static_cast<size_t>(arrays[i].bytes()) != batch.arrays[i].size())
      fail<InternalError>("{}: '{}' has {} bytes, {} takes {}", feed.path(), specs[i].name,
                          batch.arrays[i].size(), specs[i].type.str(), arrays[i].bytes());
    std::memcpy(arrays[i].data(), batch.arrays[i].data(), batch.arrays[i].size());
  }
  return session_.extent.channels > 0 ? logits(arrays[0]) : run(arrays, batch.length);
}

void Predictor::prepare(const data::Feed& feed, int64_t length) {
  std::vector<Array> arrays;
  for (const optim::TensorSpec& spec : specs_of(session_.inputs, feed.batch_size(), length))
    arrays.emplace_back(spec.type);
  run(arrays, length);
}

Array Predictor::logits(const Array& pictures) {
  Array sum;
  float weights = 0;
  const auto add = [&](const Array& input, float weight) {
    weights += weight;
    const Array result = run(std::span(&input, 1), 0);
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
  // The mean, so that probabilities are as sharp as those of one view.
  if (weights != 1)
    for (float& logit : sum.as<float>()) logit /= weights;
  return sum;
}

namespace {

/// The model behind what makes its first input of another one: `prepare` adds that to the graph.
Graph prepared(const Graph& model, const data::Field& input,
               const std::function<Value(Graph&, Value)>& prepare) {
  Graph graph;
  std::vector<Value> arguments = {graph.input(input.name, input.type)};
  for (size_t i = 1; i < model.inputs().size(); ++i)
    arguments.push_back(graph.input(model.input_names()[i], model.type(model.inputs()[i])));
  graph.set_location(input.name);
  arguments[0] = prepare(graph, arguments[0]);
  graph.set_outputs(inline_graph(graph, model, arguments), model.output_names());
  return graph;
}

}  // namespace

std::string export_session(const Session& session, int height, int width) {
  const auto specs = specs_of(session.inputs, 0, session.length);
  Graph graph = optim::build_eval_graph(*session.model.module, specs, forward, true);
  if (height > 0) {
    if (session.extent.height == 0)
      fail<InputError>("the model does not take pictures: none can be resized for it");
    data::Field pictures{specs[0].name, specs[0].type};
    pictures.type.shape[2] = height;
    pictures.type.shape[3] = width;
    graph = prepared(graph, pictures, [&](Graph& into, Value value) {
      return data::frame_pictures(into, value, prepared_frame(session.recipe, session.extent, height, width));
    });
  }
  if (const auto raw = raw_input(session))
    graph = prepared(graph, *raw, [&](Graph& into, Value value) { return encode_raw(session, into, value); });
  onnx::ExportOptions options;
  options.name = session.model.kind.empty() ? "layers" : session.model.kind;
  int at = static_cast<int>(specs.size());
  for (const auto& list : {session.model.module->parameters(), session.model.module->buffers()})
    for (const nn::Named& named : list) options.weights[at++] = optim::value_of(named);
  options.metadata["classes"] = fmt::format("{}", fmt::join(session.classes, "\n"));
  if (!session.encoding.empty()) options.metadata["encoding"] = session.encoding;
  return onnx::export_model(graph, options);
}

}  // namespace millrace::train
