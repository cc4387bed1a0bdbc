#include "trace/linearise.h"

#include <bit>
#include <set>

#include "base/format.h"

namespace millrace::trace {
namespace {

void append_text(std::string& out, const Attribute& value) {
  struct Visitor {
    std::string& out;
    void operator()(bool v) const { out += v ? "b1" : "b0"; }
    void operator()(int64_t v) const { out += fmt::format("i{}", v); }
    void operator()(double v) const { out += fmt::format("d{:x}", std::bit_cast<uint64_t>(v)); }
    void operator()(const std::string& v) const { out += fmt::format("s{}:{}", v.size(), v); }
    void operator()(const std::vector<int64_t>& v) const { out += fmt::format("l{}", v); }
    void operator()(DType v) const { out += "t" + v.name(); }
    void operator()(const Shape& v) const { out += "S" + v.str(); }
    void operator()(const Array& v) const {
      out += "A" + v.type().str() + ":";
      out.append(static_cast<const char*>(v.data()), static_cast<size_t>(v.bytes()));
    }
  };
  std::visit(Visitor{out}, value);
}

}  // namespace

Slot key_of(const Tensor& tensor) { return {tensor.node().get(), tensor.output()}; }

Linear linearise(std::span<const Tensor> outputs, uint64_t since) {
  Linear linear;
  std::map<const TensorNode*, long> uses;  // from operations of this computation
  std::set<Slot> leaves;
  std::set<const TensorNode*> done;
  struct Frame {
    TensorNode* node;
    size_t next;
  };
  std::vector<Frame> stack;
  const auto visit = [&](const Tensor& tensor) {
    if (!tensor.defined()) fail<TypeError>("a tensor that was never given a value is used");
    if (tensor.node()->is_operation() && (tensor.node()->number > since || tensor.node()->is_constant())) {
      if (done.insert(tensor.node().get()).second) stack.push_back({tensor.node().get(), 0});
    } else if (leaves.insert(key_of(tensor)).second) {
      linear.leaves.push_back(tensor);
    }
  };
  for (const Tensor& output : outputs) {
    visit(output);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.node->operands.size()) {
        visit(frame.node->operands[frame.next++]);
        continue;
      }
      linear.operations.push_back(frame.node);
      stack.pop_back();
    }
  }
  std::map<const TensorNode*, long> owners;
  for (TensorNode* node : linear.operations)
    for (const Tensor& operand : node->operands) {
      ++uses[operand.node().get()];
      owners[operand.node().get()] = operand.node().use_count();
    }
  for (const Tensor& output : outputs) owners[output.node().get()] = output.node().use_count();
  for (TensorNode* node : linear.operations)
    if (!node->is_constant() && owners[node] > uses[node]) linear.shared.push_back(node);
  return linear;
}

std::string structure(const Linear& linear, std::span<const Slot> outputs) {
  std::map<const TensorNode*, int> operation;
  std::map<Slot, int> leaf;
  std::string text;
  for (const Tensor& tensor : linear.leaves) {
    leaf[key_of(tensor)] = static_cast<int>(leaf.size());
    text += tensor.type().str() + ";";
  }
  const auto reference = [&](const Slot& slot) {
    const auto it = leaf.find(slot);
    return it != leaf.end() ? fmt::format("<{}", it->second)
                            : fmt::format("%{}.{}", operation.at(slot.first), slot.second);
  };
  for (const TensorNode* node : linear.operations) {
    operation[node] = static_cast<int>(operation.size());
    text += "\n";
    text += node->op->name;
    for (const Tensor& operand : node->operands) text += " " + reference(key_of(operand));
    for (const auto& [name, value] : node->attributes.items()) {
      text += " " + name + "=";
      append_text(text, value);
    }
    if (node->body) text += "\n" + node->body->str();
  }
  text += "\n=";
  for (const Slot& slot : outputs) text += " " + reference(slot);
  return text;
}

std::map<Slot, Value> append(Graph& graph, const Linear& linear, std::map<Slot, Value> given) {
  for (const Tensor& leaf : linear.leaves)
    if (!given.contains(key_of(leaf)))
      given[key_of(leaf)] = graph.input(fmt::format("x{}", graph.inputs().size()), leaf.type());
  const Origin outer = graph.origin();
  for (const TensorNode* node : linear.operations) {
    std::vector<Value> operands;
    for (const Tensor& operand : node->operands) operands.push_back(given.at(key_of(operand)));
    graph.set_origin(node->origin);
    const Value added =
        node->body ? graph.add_with_body(*node->op, std::move(operands), node->attributes, node->body)
                   : graph.add(*node->op, std::move(operands), node->attributes);
    for (size_t r = 0; r < node->types.size(); ++r) {
      const auto output = static_cast<int>(r);
      given[{node, output}] = {added.node, output};
    }
  }
  graph.set_origin(outer);
  return given;
}

std::vector<Value> Captured::values_of(std::span<const Tensor> tensors) const {
  std::vector<Value> found;
  for (const Tensor& tensor : tensors) found.push_back(value_of(tensor));
  return found;
}

Captured capture(std::span<const Tensor> inputs, std::span<const Tensor> outputs, std::vector<Tensor>* others,
                 uint64_t since) {
  Captured captured;
  for (const Tensor& input : inputs)
    captured.values[key_of(input)] = captured.graph.input(input.node()->name, input.type());
  const Linear linear = linearise(outputs, since);
  for (const Tensor& leaf : linear.leaves) {
    const TensorNode& node = *leaf.node();
    if (captured.values.contains(key_of(leaf))) continue;
    if (others) {
      others->push_back(leaf);
      continue;
    }
    if (node.is_symbol())
      fail<TypeError>("'{}' is not an input of this graph; give it a value or make it an input", node.name);
    captured.graph.set_origin(node.name);
    captured.values[key_of(leaf)] = captured.graph.constant(node.values[leaf.output()]);
  }
  captured.values = append(captured.graph, linear, std::move(captured.values));
  return captured;
}

std::vector<Tensor> tensors_of(const Graph& graph, std::span<const Tensor> arguments,
                               const std::source_location& where) {
  std::vector<std::vector<Tensor>> made(graph.size());
  for (size_t i = 0; i < arguments.size(); ++i) made[graph.inputs()[i].node] = {arguments[i]};
  for (int i = 0; i < graph.size(); ++i) {
    if (!made[i].empty()) continue;
    const Node& node = graph.node(i);
    std::vector<Tensor> operands;
    for (const Value& operand : node.operands) operands.push_back(made[operand.node][operand.output]);
    made[i] = record(*node.op, operands, node.attributes, node.op->runs_body() ? node.body : nullptr, where);
  }
  std::vector<Tensor> outputs;
  for (const Value& output : graph.outputs()) outputs.push_back(made[output.node][output.output]);
  return outputs;
}

}  // namespace millrace::trace
