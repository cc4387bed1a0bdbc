#include "task/model.h"

#include <algorithm>
#include <charconv>
#include <fnmatch.h>
#include <map>
#include <set>

#include <millrace/operator.h>

#include "base/contains.h"
#include "base/format.h"
#include "base/memory_nodes.h"
#include "base/size_text.h"
#include "base/suggest.h"
#include "nn/models/architecture.h"
#include "nn/models/fitted.h"
#include "ops/body.h"
#include "optim/kinds.h"
#include "task/freeze_entry.h"
#include "task/would_fit.h"

namespace millrace::task {
namespace {

/// What an input hands to an architecture.
struct InputTensors {
  std::vector<Type> types;
  nn::ModelOptions options;
};

InputTensors tensors_of(const Input& input) {
  const std::vector<data::Field> fields = input.fields();
  std::vector<Tensor> symbols;
  for (const optim::TensorSpec& spec : specs_of(fields, 0, input.length()))
    symbols.push_back(Tensor::symbol(spec.name, spec.type));
  InputTensors made;
  for (const Tensor& tensor : input.graph(symbols, false)) made.types.push_back(tensor.type());
  input.describe(made.options);
  made.options.given = made.types;
  return made;
}

std::string part_name(const std::string& name, const char* otherwise) {
  return name.empty() ? otherwise : name;
}

/// The architecture that a section of the recipe names (`key`: how it is called in messages), or the input's
/// usual one.
nn::Model architecture_of(const Section& section, const std::string& key, const Input& input,
                          const nn::ModelOptions& options) {
  const std::vector<std::string> fitting = input.architectures();
  const std::string kind = section.kind.empty() ? fitting.front() : section.kind;
  const nn::Architecture& architecture = nn::architectures().at(kind);
  if (architecture.fitted && key != "model")
    fail<InputError>(
        "{}.kind = \"{}\" is fitted to its samples, not by steps: it is a whole model, of one input and "
        "one output, and no part of one",
        key, kind);
  // Rows of queries are those of a table, and yet not all that takes a table takes them.
  const bool lacks = architecture.takes == input.gives() && !contains(fitting, kind) && input.kind().groups;
  if (lacks || (!architecture.takes.empty() && architecture.takes != input.gives()))
    fail<InputError>("{}.kind = \"{}\" does not go with {}, which gives \"{}\": choose one of {}", key, kind,
                     input_key(input.section()), input.gives(), fmt::join(fitting, ", "));
  Section chosen = section;
  if (section.kind.empty() || chosen.settings.declared().empty())
    chosen.settle(key, kind, architecture.settings);
  for (const Setting& setting : architecture.settings)
    if (setting.path) chosen.settings.set(setting.name, expand(chosen.settings.text(setting.name)));
  return architecture.make(kind, chosen.settings, options);
}

/// Layers of the recipe's own behind the one tensor that an input gives.
nn::Model layers_of(const std::vector<std::string>& lines, const Input& input, const InputTensors& given) {
  const auto fails = [&] {
    fail<InputError>(
        "layers are for an input of one tensor of numbers; {} gives others: name a kind of model",
        input_key(input.section()));
  };
  if (given.types.size() != 1 || !given.types[0].dtype.is_float()) fails();
  const Shape sample(given.types[0].shape.begin() + 1, given.types[0].shape.end());
  if (!sample.is_static()) fails();
  return nn::make_layers(lines, sample, given.types[0].dtype);
}

/// The kind of model.kind that stands for networks of inputs put together.
constexpr const char* combined_kind = "combine";

bool is_combined(const Task& task) {
  return task.inputs.size() > 1 || task.outputs.size() > 1 || task.recipe.model.kind == combined_kind;
}

nn::Model single_model(const Task& task) {
  const Input& input = *task.inputs[0];
  const Output& output = *task.outputs[0];
  InputTensors given = tensors_of(input);
  const Recipe::Model& wanted = task.recipe.model;
  if (!wanted.layers.empty()) return layers_of(wanted.layers, input, given);
  given.options.tokens = output.from() != nullptr;
  given.options.classes = output.from() ? 0 : output.width();
  return architecture_of(wanted, "model", input, given.options);
}

/// Of several inputs the network of each is in model.branches; the only input's is the model itself.
nn::Branch branch_of(const Task& task, const Input& input, int64_t features) {
  const Recipe::Model& wanted = task.recipe.model;
  InputTensors given = tensors_of(input);
  given.options.classes = features;
  nn::Branch branch{part_name(input.name(), "input"), {}};
  const auto own = wanted.branches.find(input.name());
  const bool only = task.inputs.size() == 1;
  const bool own_layers = own != wanted.branches.end() && own->second.settings.find("layers") &&
                          !own->second.settings.texts("layers").empty();
  if (only && !wanted.layers.empty()) {
    branch.model = layers_of(wanted.layers, input, given);
  } else if (own_layers) {
    branch.model = layers_of(own->second.settings.texts("layers"), input, given);
  } else if (own != wanted.branches.end()) {
    branch.model = architecture_of(own->second, "model." + input.name(), input, given.options);
  } else if (only && nn::architectures().find(wanted.kind)) {
    branch.model = architecture_of(wanted, "model", input, given.options);
  } else {
    branch.model = architecture_of(Section(), "model", input, given.options);
  }
  // All that the input gives: rows of texts come with the numbers of the texts in them, too.
  auto& inputs = branch.model.inputs;
  inputs.resize(given.types.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name.empty()) inputs[i].name = fmt::format("x{}", i);
    inputs[i].type = given.types[i];
  }
  return branch;
}

/// features, width … as the recipe has them for the layers between the branches and the heads.
Settings settings_between(const Task& task) {
  Section section = task.recipe.model;
  if (section.settings.find("features")) return section.settings;
  // The kind, or the layers, are those of the only branch.
  if (nn::architectures().find(section.kind) || !task.recipe.model.layers.empty())
    return Settings(nn::combine_settings());
  section.settle("model", combined_kind, nn::combine_settings());
  return section.settings;
}

nn::Model combined_model(const Task& task, std::vector<std::function<void(const Array&)>>& fits) {
  const nn::Architecture* const kind = nn::architectures().find(task.recipe.model.kind);
  if (kind && kind->fitted)
    fail<InputError>(
        "model.kind = \"{}\" is fitted to its samples, not by steps, and tells one thing of one input: there "
        "are {} inputs and {} outputs; make a model of each output, or choose another kind",
        kind->name, task.inputs.size(), task.outputs.size());
  std::vector<nn::Head> heads;
  for (const auto& output : task.outputs) {
    if (output->at_places())
      fail<InputError>(
          "{} is predicted at each place of a row: that goes with one input and no other output, not with {} "
          "and {}",
          output_key(output->section()), task.inputs.size(), task.outputs.size());
    heads.push_back({part_name(output->name(), "output"), output->width()});
  }
  const nn::CombineOptions options = nn::combine_options(settings_between(task), std::move(heads));
  std::vector<nn::Branch> branches;
  for (const auto& input : task.inputs) {
    branches.push_back(branch_of(task, *input, options.features));
    fits.push_back(branches.back().model.fit);
  }
  nn::Model model = nn::combine(std::move(branches), options);
  model.kind = combined_kind;
  return model;
}

/// How the model is called in messages.
std::string model_text(const Task& task) {
  const Recipe::Model& wanted = task.recipe.model;
  if (!wanted.layers.empty() && !is_combined(task))
    return fmt::format("the last layer, '{}',", wanted.layers.back());
  return fmt::format("model.kind '{}'", task.network->model().kind);
}

void check_logits(const Task& task, const Output& output, const Type& logits) {
  const bool places = output.at_places();
  const Shape& shape = logits.shape;
  if (shape.rank() == (places ? 3 : 2) && shape.back() == output.width()) return;
  fail<InputError>("{} gives {}, but {} has {} {}: the model must end in [batch, {}{}]", model_text(task),
                   shape.str(), output_key(output.section()), output.width(),
                   output.from()              ? "tokens"
                   : output.classes().empty() ? "values"
                                              : "classes",
                   places ? "length, " : "", output.width());
}

/// From arrays to the logits of all outputs, in evaluation; parameters and buffers are inputs behind the
/// arrays.
Graph logits_graph(const Task& task) {
  const auto logits = [](nn::Module& module, std::span<const Tensor> fields) {
    std::vector<optim::NamedTensor> named;
    for (Tensor& tensor : static_cast<Network&>(module).logits(fields, false))
      named.emplace_back(fmt::format("{}", named.size()), std::move(tensor));
    return named;
  };
  return optim::build_eval_graph(*task.network, specs_of(task.fields(), 0, task.length()), logits, true);
}

/// Which of the layers that the recipe lists a weight, or a place in the graph, belongs to: "layer 5, 'linear
/// 10'"; else the place itself, "layer 'blocks.0.conv1'"; "" of none.
std::string layer_text(const Task& task, std::string_view name) {
  if (name.empty()) return "";
  const std::vector<std::string>& lines = task.recipe.model.layers;
  size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool whole = error == std::errc() && (end == name.data() + name.size() || *end == '.');
  if (whole && index < lines.size() && !is_combined(task))
    return fmt::format("layer {}, '{}'", index + 1, lines[index]);
  return fmt::format("layer '{}'", name);
}

double bytes_of(const Type& type) {
  double bytes = static_cast<double>(type.dtype.bytes());
  for (int d = 0; d < type.shape.rank(); ++d) bytes *= static_cast<double>(type.shape[d].size());
  return bytes;
}

std::string gigabytes(double bytes) { return fmt::format("{:.3g} GB", bytes / 1e9); }

/// Sizes that no machine like this one can hold are said before a weight is drawn or a kernel compiled: those
/// of the weights, and of the largest value that a product or convolution of a step leaves.
void refuse_too_large(const Task& task, const Graph& graph) {
  const auto memory = static_cast<double>(machine_memory());
  double weights = 0, largest = 0;
  std::string what;
  for (const nn::Named& named : task.network->parameters()) {
    const double bytes = bytes_of(named.tensor->type());
    weights += bytes;
    if (bytes <= largest) continue;
    largest = bytes;
    const size_t dot = named.name.rfind('.');
    what = fmt::format("{}, {} of {}", named.name, named.tensor->shape().str(),
                       layer_text(task, std::string_view(named.name).substr(0, dot)));
  }
  if (weights > memory)
    fail<InputError>("the model has {:.3g} parameters, {} alone, and this machine has {}; the largest is {}",
                     weights / 4, gigabytes(weights), gigabytes(memory), what);
  const Recipe::Train& train = task.recipe.train;
  const Bindings batch = {{"batch", train.batch / train.accumulate}};
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (!node.op->flops) continue;
    for (const Type& type : node.types) {
      const Type whole = {type.dtype, type.shape.specialise(batch)};
      if (!whole.shape.is_static() || bytes_of(whole) <= memory) continue;
      const std::string layer = layer_text(task, node.origin.layer.str());
      fail<InputError>(
          "{} makes {} of {}, of a batch of {}, and this machine has {}: take a smaller layer, or batch",
          layer.empty() ? model_text(task) : layer, gigabytes(bytes_of(whole)), whole.shape.str(),
          batch.at("batch"), gigabytes(memory));
    }
  }
}

/// Bytes of what the optimiser keeps from step to step, and of the average of weights.
double kept_beside_weights(const Task& task) {
  const Recipe::Train& train = task.recipe.train;
  const optim::OptimizerKind& kind = optim::optimizer_kinds().at(train.optimizer.kind);
  const auto optimizer = kind.make(train.optimizer.settings, {});
  double bytes = 0;
  for (const nn::Named& named : task.network->parameters()) {
    if (!named.trainable) continue;
    for (const optim::StateArray& array : optimizer->state_of(named.name, named.tensor->type()))
      bytes += bytes_of(array.type);
    if (train.ema > 0) bytes += bytes_of(named.tensor->type());
  }
  return train.precision == "bf16-pure" ? bytes / 2 : bytes;
}

void refuse_large_step(const Task& task) {
  const Recipe::Train& train = task.recipe.train;
  if (!train.freeze.empty()) return;  // then less is kept
  const Graph graph = logits_graph(task);
  const size_t arrays = task.fields().size();
  std::set<int> weights, kept;
  double fixed = 0, bytes = 0, largest = 0;
  std::string layer;  // what the largest of them is for
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    if (i >= arrays) weights.insert(graph.inputs()[i].node);
  for (const int weight : weights) fixed += bytes_of(graph.node(weight).types[0]);
  const int64_t rows = train.batch / train.accumulate;
  const double width = train.precision == "fp32" ? 1 : 0.5;
  const double state = kept_beside_weights(task);
  // With train.memory as little is kept of activations as it takes.
  for (int i = 0; train.memory.empty() && i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    const auto& operands = node.operands;
    const bool weighed = node.op->flops && std::any_of(operands.begin(), operands.end(), [&](const Value& v) {
                           return weights.contains(v.node);
                         });
    for (const Value& operand : operands) {
      if (!weighed || weights.contains(operand.node)) continue;
      const Type& type = graph.type(operand);
      const Type whole = {type.dtype, type.shape.specialise({{"batch", rows}})};
      if (!whole.shape.is_static() || !kept.insert(operand.node).second) continue;
      bytes += width * bytes_of(whole);
      if (width * bytes_of(whole) <= largest) continue;
      largest = width * bytes_of(whole);
      layer = layer_text(task, node.origin.layer.str());
    }
  }
  const auto memory = static_cast<double>(machine_memory());
  if (fixed + state + bytes <= memory) return;
  if (fixed + state > memory)
    fail<InputError>(
        "the model is too large for this machine: its weights take {}, and what {} keeps for them {} more, "
        "and there are {}: take a smaller model, or an optimizer that keeps less (train.optimizer)",
        gigabytes(fixed), train.ema > 0 ? train.optimizer.kind + " and train.ema" : train.optimizer.kind,
        gigabytes(state), gigabytes(memory));
  const std::string ways = would_fit(train, fixed + state, bytes, memory);
  fail<InputError>(
      "the model is too large for this machine: a step of training keeps {} at least, of weights, of what "
      "the optimizer keeps for them, and of activations for their gradients, of a batch of {}, and there are "
      "{}{}: {}, or train.memory, which computes some again",
      gigabytes(fixed + state + bytes), rows, gigabytes(memory),
      layer.empty() ? "" : fmt::format(" (the most, {}, for {})", gigabytes(largest), layer),
      ways.empty() ? "take a smaller model" : "what would fit at most is " + ways);
}

}  // namespace

Network::Network(const Task& task, nn::Model model, std::vector<std::function<void(const Array&)>> fits)
    : model_(std::move(model)), fits_(std::move(fits)) {
  for (const auto& input : task.inputs) inputs_.push_back(input.get());
  combined_ = dynamic_cast<nn::Combined*>(model_.module.get());
  child("", model_.module);
}

std::vector<Tensor> Network::features(std::span<const Tensor> fields, bool training) const {
  std::vector<Tensor> given;
  for (const Input* input : inputs_) {
    const size_t count = input->fields().size() + (training ? input->training_fields().size() : 0);
    if (count > fields.size())
      fail<InternalError>("{} needs {} arrays, {} are left", input_key(input->section()), count,
                          fields.size());
    for (Tensor& tensor : input->graph(fields.first(count), training)) given.push_back(std::move(tensor));
    fields = fields.subspan(count);
  }
  return given;
}

std::vector<Tensor> Network::logits(std::span<const Tensor> fields, bool training) {
  const std::vector<Tensor> given = features(fields, training);
  if (combined_) return combined_->heads(given);
  return {(*model_.module)(given)};
}

Tensor Network::forward_many(std::span<const Tensor> fields) {
  const std::vector<Tensor> all = logits(fields, false);
  return all.size() == 1 ? all[0] : concat(all, 1);
}

void Network::fit(size_t input, const Array& samples) {
  const Tensor field(samples);
  const std::vector<Tensor> given = inputs_[input]->graph({&field, 1}, false);
  fits_[input](given[0].to_array());
}

namespace {

/// Gives the layers that the recipe names adapters; all but these and the heads is frozen.
void add_adapters(const Task& task) {
  const Recipe::Train& train = task.recipe.train;
  std::set<std::string> heads;
  for (const auto& names : head_parameters(task)) heads.insert(names.begin(), names.end());
  task.network->set_trainable([&](const std::string& name) { return !heads.contains(name); }, false);
  std::vector<std::string> names;
  std::set<std::string> used;
  for (const auto& [name, module] : task.network->modules()) {
    auto* const layer = dynamic_cast<nn::Linear*>(module);
    if (!layer || heads.contains(name + ".weight")) continue;
    names.push_back(name);
    const std::string& own = name;
    const auto fits = [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), own.c_str(), 0) == 0;
    };
    for (const std::string& pattern : train.lora_layers)
      if (fits(pattern)) used.insert(pattern);
    if (!train.lora_layers.empty() && std::none_of(train.lora_layers.begin(), train.lora_layers.end(), fits))
      continue;
    try {
      layer->adapt(train.lora, train.lora_alpha);
    } catch (const InputError& error) {
      fail<InputError>("train.lora = {}: {}: {}", train.lora, name, error.what());
    }
  }
  if (names.empty())
    fail<InputError>("train.lora: {} has no linear layers but its heads, which train anyway",
                     model_text(task));
  for (const std::string& pattern : train.lora_layers)
    if (!used.contains(pattern))
      fail<InputError>("train.lora_layers: no linear layer but heads is called '{}'{}", pattern,
                       did_you_mean_or_list(pattern, names));
}

}  // namespace

void make_network(Task& task, bool to_train) {
  std::vector<std::function<void(const Array&)>> fits;
  nn::Model model;
  try {
    if (is_combined(task)) {
      model = combined_model(task, fits);
    } else {
      model = single_model(task);
      fits.push_back(model.fit);
    }
  } catch (const TypeError& error) {
    fail<InputError>("the model does not go with the data: {}", error.what());
  }
  task.network = std::make_shared<Network>(task, std::move(model), std::move(fits));
  try {
    const Graph graph = logits_graph(task);
    for (size_t i = 0; i < task.outputs.size(); ++i)
      check_logits(task, *task.outputs[i], graph.type(graph.outputs()[i]));
    refuse_too_large(task, graph);
  } catch (const TypeError& error) {
    fail<InputError>("{} does not go with the data: {}", model_text(task), error.what());
  }
  if (task.recipe.train.lora > 0) add_adapters(task);
  if (to_train && !dynamic_cast<const nn::Fitted*>(task.network->model().module.get()))
    refuse_large_step(task);
  task.network->initialise(static_cast<uint64_t>(task.recipe.train.seed));
}

std::vector<std::vector<std::string>> head_parameters(const Task& task) {
  const Graph graph = logits_graph(task);
  const size_t arrays = task.fields().size();
  const std::vector<char> of_data = ops::reached_from(graph, std::span(graph.inputs()).first(arrays));
  std::map<int, std::string> parameters;
  for (size_t i = arrays; i < graph.inputs().size(); ++i)
    parameters.emplace(graph.inputs()[i].node, graph.input_names()[i]);
  std::vector<std::vector<std::string>> heads;
  for (const Value& logits : graph.outputs()) {
    std::set<std::string> head;
    std::vector<int> open = {logits.node};
    for (std::set<int> seen; !open.empty();) {
      const int node = open.back();
      open.pop_back();
      if (!seen.insert(node).second) continue;
      if (const auto parameter = parameters.find(node); parameter != parameters.end())
        head.insert(parameter->second);
      // Behind a product that takes in data the body of the model begins; its weights are the head's.
      const bool product = of_data[static_cast<size_t>(node)] && graph.node(node).op->flops;
      for (const Value& operand : graph.node(node).operands)
        if (!product || !of_data[static_cast<size_t>(operand.node)]) open.push_back(operand.node);
    }
    heads.emplace_back(head.begin(), head.end());
  }
  return heads;
}

std::vector<std::string> parameters_by_use(const Task& task) {
  const Graph graph = logits_graph(task);
  std::map<int, std::string> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    inputs.emplace(graph.inputs()[i].node, graph.input_names()[i]);
  std::vector<std::string> names;
  for (int i = 0; i < graph.size(); ++i)
    for (const Value& operand : graph.node(i).operands)
      if (const auto found = inputs.find(operand.node); found != inputs.end()) {
        names.push_back(found->second);
        inputs.erase(found);
      }
  const std::vector<nn::Named> parameters = task.network->parameters();
  std::erase_if(names, [&](const std::string& name) {
    return std::none_of(parameters.begin(), parameters.end(),
                        [&](const nn::Named& each) { return each.name == name; });
  });
  return names;
}

optim::Rates rates_of(const Task& task) {
  const Recipe::Train& train = task.recipe.train;
  optim::Rates rates{{}, train.layer_decay, {}};
  if (train.layer_decay != 1) rates.by_use = parameters_by_use(task);
  for (const std::string& entry : train.rates) rates.by_name.push_back(parse_rate(entry));
  return rates;
}

void fit_network(Task& task, const Reading& reading) {
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    if (!task.network->fits(i)) continue;
    const std::optional<Array> samples = task.inputs[i]->fitting(reading);
    if (!samples)
      fail<InputError>("model.kind '{}' takes filters from its samples, which {} does not offer",
                       task.network->model().kind, input_key(task.inputs[i]->section()));
    task.network->fit(i, *samples);
  }
}

std::vector<optim::TensorSpec> specs_of(std::span<const data::Field> fields, int64_t batch, int64_t length) {
  Bindings sizes;
  if (batch > 0) sizes["batch"] = batch;
  if (length > 0) sizes["length"] = length;
  std::vector<optim::TensorSpec> specs;
  for (const data::Field& field : fields)
    specs.push_back({field.name, {field.type.dtype, field.type.shape.specialise(sizes)}});
  return specs;
}

CompileOptions compile_options(const Task& task, const std::string& precision, const std::string& memory) {
  CompileOptions options;
  if (!memory.empty()) options.memory = static_cast<int64_t>(parse_bytes("train.memory", memory));
  options.precision = precision;
  options.exact = task.recipe.train.exact;
  options.choices = task.choices;
  return options;
}

}  // namespace millrace::task
