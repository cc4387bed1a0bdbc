#include "support/onnx_run.h"

#include <algorithm>

#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "ir/first_along.h"
#include "onnx/import/call.h"

namespace millrace::test {
namespace {

using onnx::HostValue;

/// The tensors of a value under the names that the importer gives them.
void collect(const HostValue& value, const std::string& name, std::map<std::string, Array>& arrays) {
  if (value.form == HostValue::Form::tensor) arrays[name] = value.array;
  for (size_t i = 0; i < value.items.size(); ++i)
    collect(value.items[i], fmt::format("{}.{}", name, i), arrays);
}

HostValue assembled(const onnx::OutputShape& shape, const std::vector<Array>& arrays) {
  switch (shape.form) {
    case HostValue::Form::tensor: {
      const Array& whole = arrays[static_cast<size_t>(shape.at)];
      if (shape.bounded_axis < 0) return HostValue::of(whole);
      return HostValue::of(
          first_along(whole, shape.bounded_axis, arrays[static_cast<size_t>(shape.size_at)].int_at(0)));
    }
    case HostValue::Form::texts:
      return HostValue::of(shape.texts);
    case HostValue::Form::sequence: {
      std::vector<HostValue> items;
      for (const onnx::OutputShape& each : shape.items) items.push_back(assembled(each, arrays));
      return HostValue::of(std::move(items));
    }
    default:
      return {};
  }
}

/// Imports with as few inputs known as will do.
onnx::Imported imported_for(const onnx::Model& model, const std::map<std::string, HostValue>& inputs,
                            std::vector<std::string>& known) {
  onnx::ImportOptions options;
  for (const auto& [name, value] : inputs)
    if (value.form == HostValue::Form::tensor)
      options.inputs[name] = value.array.type();
    else
      options.values[name] = value;
  while (true) {
    try {
      return onnx::import_model(model, options);
    } catch (const onnx::UnknownInputs& e) {
      bool more = false;
      for (const std::string& wanted : e.inputs)
        for (const auto& [name, value] : inputs) {
          if (wanted != name && !wanted.starts_with(name + ".")) continue;
          if (std::find(known.begin(), known.end(), name) != known.end()) continue;
          more = true;
          known.push_back(name);
          options.inputs.erase(name);
          if (value.form == HostValue::Form::tensor)
            options.known[name] = value.array;
          else
            options.known_values.insert(name);
        }
      if (!more) throw;
    }
  }
}

std::vector<Array> computed(const Graph& graph, const std::vector<Array>& inputs, bool reference,
                            std::vector<LaunchInfo>& launches) {
  if (graph.outputs().empty()) return {};
  if (reference) return ref::evaluate(graph, inputs);
  Program program = Program::compile(graph, {});
  for (size_t i = 0; i < inputs.size(); ++i) program.input(static_cast<int>(i)).assign(inputs[i]);
  program.run();
  launches = program.launches();
  std::vector<Array> results;
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    results.push_back(program.output(static_cast<int>(i)).clone());
  return results;
}

}  // namespace

Ran run_model(const onnx::Model& model, const std::map<std::string, HostValue>& inputs, bool reference) {
  Ran ran;
  ran.imported = imported_for(model, inputs, ran.known);
  std::map<std::string, Array> given;
  for (const auto& [name, value] : inputs) collect(value, name, given);
  std::vector<Array> arrays;
  for (const std::string& name : ran.imported.graph.input_names()) {
    const auto found = given.find(name);
    if (found == given.end()) fail<InputError>("the model's input '{}' is not given", name);
    arrays.push_back(found->second);
  }
  const std::vector<Array> results = computed(ran.imported.graph, arrays, reference, ran.launches);
  for (const onnx::OutputShape& shape : ran.imported.outputs)
    ran.outputs.push_back(assembled(shape, results));
  return ran;
}

}  // namespace millrace::test
