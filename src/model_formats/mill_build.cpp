#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include <millrace/version.h>

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/codegen/object_cache.h"
#include "backend/cpu/kernel_sources.h"
#include "base/cpu.h"
#include "base/format.h"
#include "base/section_file.h"
#include "model_formats/mill.h"
#include "model_formats/open_graph.h"
#include "runtime/ready.h"
#include "session/sizes.h"

namespace millrace::mill {
namespace {

using nlohmann::json;

std::span<const uint8_t> bytes_of(const Array& array) {
  return {static_cast<const uint8_t*>(array.data()), static_cast<size_t>(array.bytes())};
}

json values_json(const std::vector<SessionValue>& values) {
  json list = json::array();
  for (const SessionValue& value : values) {
    list.push_back({{"name", value.name}, {"type", value.type.str()}});
    if (value.data_axis >= 0) list.back()["data_axis"] = value.data_axis;
  }
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

/// Place `row` of `rows` along the first dimension.
Array one_place(const Array& array, int64_t rows, int64_t row) {
  Shape shape = array.shape();
  shape[0] = shape[0].size() / rows;
  Array one(array.dtype(), shape);
  std::memcpy(one.data(), static_cast<const char*>(array.data()) + row * one.bytes(),
              static_cast<size_t>(one.bytes()));
  return one;
}

bool stands_first(const SessionValue& value, const std::string& name) {
  const Shape& shape = value.type.shape;
  return shape.rank() > 0 && shape[0].names() == std::vector<std::string>{name};
}

/// Tries whether what a model says of three places is what it says of each alone. That is no proof, but what
/// mixes them (a norm over the batch, a softmax along it) shows.
void try_independent(const SessionModel& model, const std::string& name, Bindings sizes) {
  constexpr int64_t rows = 3;
  for (const SessionValue& output : model.outputs)
    if (output.data_axis >= 0)
      fail<InputError>("'{}' cannot be filled up: how large the output '{}' is, depends on data", name,
                       output.name);
    else if (!stands_first(output, name))
      fail<InputError>("'{}' cannot be filled up: it is not the first dimension of the output '{}'", name,
                       output.name);
  if (std::none_of(model.inputs.begin(), model.inputs.end(),
                   [&](const SessionValue& input) { return stands_first(input, name); }))
    fail<InputError>("'{}' cannot be filled up: it is no input's first dimension", name);
  sizes[name] = rows;
  SessionModel plain = model;
  plain.independent.clear();
  const Session session(std::move(plain));
  const std::vector<Array> inputs = made_up_inputs(model, sizes);
  const std::vector<Array> together = session.run(inputs);
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<Array> own;
    for (size_t i = 0; i < inputs.size(); ++i)
      own.push_back(stands_first(model.inputs[i], name) ? one_place(inputs[i], rows, row) : inputs[i]);
    const std::vector<Array> alone = session.run(own);
    for (size_t o = 0; o < alone.size(); ++o) {
      if (!(apart(alone[o], one_place(together[o], rows, row)) <= 1e-3))
        fail<InputError>(
            "'{}' cannot be filled up: of made-up inputs, the model's output '{}' depends on what stands "
            "beside them",
            name, model.outputs[o].name);
    }
  }
}

}  // namespace

void build(const SessionModel& model, const BuildOptions& options, const std::filesystem::path& path) {
  CompileOptions compile = model.compile;
  compile.choose_alike = false;  // what is built is for its sizes, and others find the nearest
  if (!options.precision.empty()) compile.precision = options.precision;
  if (options.sizes.empty()) fail<InputError>("there are no sizes to build for");
  for (const std::string& name : options.independent)
    if (std::find(model.independent.begin(), model.independent.end(), name) == model.independent.end())
      try_independent(model, name, options.sizes.front());
  if (compile.target != "cpu")
    fail<InputError>("a model is built for the target cpu, not {}", compile.target);
  Weights weights;
  json description = {{"millrace", version()},
                      {"cpu", cpu_name()},
                      {"kernels", cpu::kernel_sources()},
                      {"precision", compile.precision},
                      {"exact", compile.exact},
                      {"inputs", values_json(model.inputs)},
                      {"outputs", values_json(model.outputs)},
                      {"independent", options.independent},
                      {"graphs", json::array()}};
  std::map<std::string, std::string> choices = compile.choices;
  std::string graphs;
  std::map<std::pair<int64_t, std::string>, Array> packed;  // by constant and form
  codegen::forget_unused_code();
  const codegen::RecordedObjects recorded;
  for (const Bindings& sizes : options.sizes) {
    options.report(fmt::format("compiling for {}", sizes_words(sizes)));
    compile.bindings = sizes;
    compile.choices = choices;
    const ReadyGraph ready = make_ready(whole_graph(model, sizes), compile);
    choices.insert(ready.choices.begin(), ready.choices.end());
    for (const PackedConstant& each : ready.packed)
      packed.emplace(std::pair(weights.number_of(each.constant), each.form), each.array);
    const std::string text = without_constants(ready.graph, weights).str();
    json bound = json::object();
    for (const auto& [name, size] : sizes) bound[name] = size;
    description["graphs"].push_back({{"sizes", bound}, {"offset", graphs.size()}, {"bytes", text.size()}});
    graphs += text;
  }
  description["choices"] = choices;
  compile.choices = choices;
  const OpenGraph open = learn_graph(model, compile, weights);
  options.report(!open.text.empty()     ? "other sizes will be compiled when they are asked for"
                 : open.why_not.empty() ? "there are no other sizes"
                                        : "other sizes cannot be run: " + open.why_not);
  description["any_sizes"] = json::object();
  for (const auto& [name, range] : open.sizes) description["any_sizes"][name] = {range.first, range.second};
  SectionWriter writer(path, kMagic, kVersion);
  const auto add_arrays = [&](const std::string& section, const std::vector<Array>& arrays) {
    std::vector<std::span<const uint8_t>> parts;
    for (const Array& array : arrays) parts.push_back(bytes_of(array));
    const std::vector<uint64_t> places = writer.add(section, parts);
    json list = json::array();
    for (size_t i = 0; i < places.size(); ++i)
      list.push_back({{"type", arrays[i].type().str()}, {"offset", places[i]}});
    return list;
  };
  description["constants"] = add_arrays("weights", weights.arrays());
  std::vector<Array> forms;
  for (const auto& [which, array] : packed) forms.push_back(array);
  json& listed = description["packed"] = add_arrays("packed", forms);
  size_t next = 0;
  for (const auto& [which, array] : packed) {
    listed[next]["constant"] = which.first;
    listed[next++]["form"] = which.second;
  }
  writer.add("objects", objects_section(recorded.objects()));
  writer.add("graphs", graphs);
  writer.add("any", open.text);
  writer.add("description", description.dump());
  writer.commit();
}

}  // namespace millrace::mill
