#include "support/onnx_run.h"

#include <algorithm>
#include <deque>

#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "ir/first_along.h"
#include "onnx/import/call.h"
#include "onnx/writer.h"

namespace millrace::test {
namespace {

/// The tensors of a value under the names that they have as inputs.
void collect(const HostValue& value, const std::string& name, std::map<std::string, Array>& arrays) {
  if (value.form == HostValue::Form::tensor) arrays[name] = value.array;
  for (size_t i = 0; i < value.items.size(); ++i)
    collect(value.items[i], fmt::format("{}.{}", name, i), arrays);
}

HostValue assembled(const onnx::Item& item, const std::map<Value, Array>& results) {
  switch (item.form) {
    case onnx::Item::Form::tensor: {
      const Array& whole = results.at(item.value);
      if (item.bounded_axis < 0) return HostValue::of(whole);
      return HostValue::of(first_along(whole, item.bounded_axis, results.at(item.size).int_at(0)));
    }
    case onnx::Item::Form::texts:
      return HostValue::of(*item.texts);
    case onnx::Item::Form::sequence: {
      std::vector<HostValue> items;
      for (const onnx::Item& each : *item.items) items.push_back(assembled(each, results));
      return HostValue::of(std::move(items));
    }
    default:
      return {};
  }
}

/// A model whose inputs are tensors, and known or not.
struct Given {
  onnx::Model model;
  onnx::ImportOptions options;
  std::vector<onnx::NodeProto> nodes;  // put the others together
  std::deque<std::string> bytes;       // of initialisers

  void add(const std::string& name, const HostValue& value, bool known) {
    onnx::GraphProto& graph = model.graph;
    onnx::NodeProto node;
    node.outputs = {name};
    switch (value.form) {
      case HostValue::Form::tensor:
        if (known) {
          const std::string& tensor = bytes.emplace_back(onnx::tensor_message(name, value.array).text());
          graph.initialisers.push_back(onnx::parse_tensor(tensor, name));
        } else {
          graph.inputs.emplace_back().name = name;
          options.inputs[name] = value.array.type();
        }
        return;
      case HostValue::Form::texts: {
        onnx::TensorProto& tensor = graph.initialisers.emplace_back();
        tensor.name = name;
        tensor.data_type = 8;
        tensor.dims = value.texts.shape;
        tensor.texts = value.texts.values;
        return;
      }
      case HostValue::Form::sequence:
        node.op_type = "SequenceConstruct";
        for (size_t i = 0; i < value.items.size(); ++i) {
          node.inputs.push_back(fmt::format("{}.{}", name, i));
          add(node.inputs.back(), value.items[i], known);
        }
        break;
      case HostValue::Form::nothing:
        node.op_type = "Optional";
        break;
    }
    nodes.push_back(node);
  }
};

/// Imports with as few inputs known as will do.
onnx::Imported imported_for(const onnx::Model& model, const std::map<std::string, HostValue>& inputs,
                            std::vector<std::string>& known) {
  const auto is_known = [&](const std::string& name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  while (true) {
    Given given{.model = model, .options = {}, .nodes = {}, .bytes = {}};
    std::vector<onnx::NodeProto>& nodes = given.model.graph.nodes;
    given.model.graph.inputs.clear();
    for (const onnx::ValueInfo& input : model.graph.inputs)
      if (const auto value = inputs.find(input.name); value != inputs.end())
        given.add(input.name, value->second, is_known(input.name));
      else
        given.model.graph.inputs.push_back(input);
    nodes.insert(nodes.begin(), given.nodes.begin(), given.nodes.end());
    try {
      return onnx::import_model(given.model, given.options);
    } catch (const onnx::UnknownInputs& e) {
      bool more = false;
      for (const std::string& wanted : e.inputs)
        for (const auto& [name, value] : inputs) {
          if ((wanted != name && !wanted.starts_with(name + ".")) || is_known(name)) continue;
          more = true;
          known.push_back(name);
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
  const std::vector<Array> computed_now = computed(ran.imported.graph, arrays, reference, ran.launches);
  std::map<Value, Array> results;
  for (size_t i = 0; i < computed_now.size(); ++i)
    results.emplace(ran.imported.graph.outputs()[i], computed_now[i]);
  for (const onnx::Item& output : ran.imported.outputs) ran.outputs.push_back(assembled(output, results));
  return ran;
}

}  // namespace millrace::test
