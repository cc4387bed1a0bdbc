#include "cli/bench_infer.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include <millrace/nn.h>

#include "base/contains.h"
#include "base/format.h"
#include "base/words.h"
#include "cli/model_sizes.h"

namespace millrace::cli {
namespace {

/// A built-in network with its weights as constants.
Session built_in(const ZooOptions& options) {
  const auto network = std::make_shared<const nn::Model>(nn::make_model(options.model));
  network->module->initialise(0);
  SessionModel model;
  std::vector<Type> types;
  for (const nn::InputSpec& input : network->inputs) {
    model.inputs.push_back({input.name, input.type});
    types.push_back(input.type);
  }
  model.outputs = {{"y", nn::output_type(*network->module, types)}};
  if (options.precision == "bf16-pure") network->module->store_parameters(bf16);
  model.graph = [network](const Bindings& sizes) { return inference_graph(*network, sizes); };
  model.independent = {"batch"};
  model.compile = compile_options(options);
  return Session(std::move(model));
}

bool is_built_in(const std::string& name) {
  const std::vector<std::string> kinds = nn::model_kinds();
  return std::find(kinds.begin(), kinds.end(), name) != kinds.end();
}

/// InputError from built_in() where there is no such thing at all.
Session session_of(const ZooOptions& options) {
  const bool file = has_ending(options.model, {".onnx", ".mill"}) || contains(options.model, '/');
  if (is_built_in(options.model) || (!file && !std::filesystem::exists(options.model)))
    return built_in(options);
  if (options.exact || !options.memory.empty())
    fail<InputError>("--exact and --memory are for built-in networks, not for {}", options.model);
  return Session::load(options.model, {.precision = options.precision});
}

/// The first dimension of the first input that has one with a name; empty: none has.
std::string batch_name(const std::vector<SessionValue>& inputs) {
  for (const SessionValue& input : inputs)
    if (input.type.shape.rank() > 0 && !input.type.shape[0].names().empty())
      return input.type.shape[0].names().front();
  return "";
}

/// Normal floats, and integers as built-in networks take them, or below a number.
void fill_input(Array& array, const nn::InputSpec* spec, int64_t below, uint64_t stream) {
  nn::InputSpec any;
  any.high = static_cast<double>(below);
  fill_random(array, spec ? *spec : any, stream);
}

std::vector<Array> inputs_of(const Session& session, const ZooOptions& options, Bindings sizes,
                             int64_t below) {
  if (below < 1) fail<InputError>("--below {}: integers are drawn below 1 or more", below);
  const std::string batch = batch_name(session.inputs());
  if (!batch.empty()) sizes[batch] = options.batch;
  std::map<std::string, nn::InputSpec> specs;
  if (is_built_in(options.model))
    for (nn::InputSpec& input : nn::make_model(options.model).inputs) specs[input.name] = std::move(input);
  std::vector<Array> arrays;
  for (const SessionValue& input : session.inputs()) {
    for (const Dim& dim : input.type.shape)
      for (const std::string& name : dim.names())
        if (!sizes.contains(name))
          fail<InputError>("'{}' is {}: say how large '{}' is, with --sizes {}=128", input.name,
                           input.type.str(), name, name);
    Array& array = arrays.emplace_back(input.type.dtype, input.type.shape.specialise(sizes));
    if (batch.empty() && array.shape().rank() > 0 && array.shape()[0] != options.batch)
      fail<InputError>("'{}' is {}: the model takes a batch of {} only", input.name, input.type.str(),
                       array.shape()[0].str());
    const auto found = specs.find(input.name);
    fill_input(array, found == specs.end() ? nullptr : &found->second, below, arrays.size());
  }
  return arrays;
}

}  // namespace

InferBench::InferBench(const ZooOptions& options, const std::string& sizes, int64_t below)
    : batch_(options.batch),
      session_(session_of(options)),
      inputs_(inputs_of(session_, options, parse_sizes(sizes, session_.inputs()), below)) {
  session_.prepare(session_.sizes(inputs_));
}

}  // namespace millrace::cli
