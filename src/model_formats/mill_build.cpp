#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <xxhash.h>

#include <millrace/version.h>

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/codegen/object_cache.h"
#include "base/format.h"
#include "base/section_file.h"
#include "model_formats/mill.h"
#include "runtime/machine.h"
#include "runtime/ready.h"

namespace millrace::mill {
namespace {

using nlohmann::json;

std::span<const uint8_t> bytes_of(const Array& array) {
  return {static_cast<const uint8_t*>(array.data()), static_cast<size_t>(array.bytes())};
}

/// Arrays of all graphs: equal ones are there once.
class Weights {
 public:
  int64_t number_of(const Array& array) {
    const XXH128_hash_t hash = XXH3_128bits(array.data(), static_cast<size_t>(array.bytes()));
    std::vector<int64_t>& like = by_hash_[{hash.high64, hash.low64}];
    for (const int64_t number : like)
      if (arrays_[static_cast<size_t>(number)].identical(array)) return number;
    like.push_back(static_cast<int64_t>(arrays_.size()));
    arrays_.push_back(array);
    return like.back();
  }
  const std::vector<Array>& arrays() const { return arrays_; }

 private:
  std::vector<Array> arrays_;
  std::map<std::pair<uint64_t, uint64_t>, std::vector<int64_t>> by_hash_;
};

/// The graph with its large constants as inputs that say which they are.
Graph without_constants(const Graph& graph, Weights& weights) {
  Rewriter rewrite(graph);
  size_t inputs = 0;
  for (int i = 0; i < graph.size(); ++i) {
    const Value value{i, 0};
    rewrite.graph().set_location(graph.node(i).location);
    if (graph.is_input(value)) {
      const std::string& name = graph.input_names()[inputs++];
      if (name.starts_with(kConstant)) fail<InputError>("an input's name begins with a control character");
      rewrite.set(value, rewrite.graph().input(name, graph.type(value)));
    } else if (const Array* const constant = graph.constant_value(value);
               constant && constant->bytes() >= kLeastOutside) {
      const std::string name = fmt::format("{}{}.{}", kConstant, weights.number_of(*constant), i);
      rewrite.set(value, rewrite.graph().input(name, constant->type()));
    } else {
      rewrite.copy(i);
    }
  }
  return rewrite.finish();
}

json values_json(const std::vector<SessionValue>& values) {
  json list = json::array();
  for (const SessionValue& value : values) list.push_back({{"name", value.name}, {"type", value.type.str()}});
  return list;
}

/// Keys and objects, each behind its size.
std::string objects_section(const std::map<std::string, std::string>& objects) {
  std::string text;
  const auto add = [&](std::string_view part) {
    const uint64_t size = part.size();
    text.append(reinterpret_cast<const char*>(&size), sizeof size);
    text += part;
  };
  for (const auto& [key, object] : objects) {
    add(key);
    add(object);
  }
  return text;
}

std::string sizes_words(const Bindings& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, size);
  return text.empty() ? "its sizes" : text;
}

}  // namespace

void build(const SessionModel& model, const BuildOptions& options, const std::filesystem::path& path) {
  CompileOptions compile = model.compile;
  if (!options.precision.empty()) compile.precision = options.precision;
  if (compile.target != "cpu")
    fail<InputError>("a model is built for the target cpu, not {}", compile.target);
  Weights weights;
  json description = {{"millrace", version()},
                      {"cpu", cpu_name()},
                      {"precision", compile.precision},
                      {"exact", compile.exact},
                      {"inputs", values_json(model.inputs)},
                      {"outputs", values_json(model.outputs)},
                      {"independent", options.independent},
                      {"graphs", json::array()}};
  std::map<std::string, std::string> choices = compile.choices;
  std::string graphs;
  codegen::forget_unused_code();
  const codegen::RecordedObjects recorded;
  for (const Bindings& sizes : options.sizes) {
    options.report(fmt::format("compiling for {}", sizes_words(sizes)));
    compile.bindings = sizes;
    compile.choices = choices;
    // Weights beside the graph become constants of it, to be folded and packed.
    Graph graph = model.graph(sizes);
    if (!model.weights.empty()) {
      Rewriter rewrite(graph);
      for (size_t i = 0; i < graph.inputs().size(); ++i) {
        const Value input = graph.inputs()[i];
        const bool given = i < model.inputs.size();
        rewrite.set(input, given ? rewrite.graph().input(graph.input_names()[i], graph.type(input))
                                 : rewrite.graph().constant(model.weights.at(i - model.inputs.size())));
      }
      for (int i = 0; i < graph.size(); ++i)
        if (!graph.is_input({i, 0})) rewrite.copy(i);
      graph = rewrite.finish();
    }
    const ReadyGraph ready = make_ready(graph, compile);
    choices.insert(ready.choices.begin(), ready.choices.end());
    const std::string text = without_constants(ready.graph, weights).str();
    json bound = json::object();
    for (const auto& [name, size] : sizes) bound[name] = size;
    description["graphs"].push_back({{"sizes", bound}, {"offset", graphs.size()}, {"bytes", text.size()}});
    graphs += text;
  }
  description["choices"] = choices;
  options.report("writing");
  std::vector<std::span<const uint8_t>> parts;
  for (const Array& array : weights.arrays()) parts.push_back(bytes_of(array));
  SectionWriter writer(path, kMagic, kVersion);
  const std::vector<uint64_t> places = writer.add("weights", parts);
  json& constants = description["constants"] = json::array();
  for (size_t i = 0; i < places.size(); ++i)
    constants.push_back({{"type", weights.arrays()[i].type().str()}, {"offset", places[i]}});
  writer.add("objects", objects_section(recorded.objects()));
  writer.add("graphs", graphs);
  writer.add("description", description.dump());
  writer.commit();
}

}  // namespace millrace::mill
