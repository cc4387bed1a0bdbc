#include <source_location>

#include <millrace/rewrite.h>

#include "base/format.h"
#include "ir/operator.h"
#include "trace/linearise.h"
#include "trace/node.h"

namespace millrace {
namespace {

bool commutes(std::string_view op) {
  return op == "add" || op == "mul" || op == "maximum" || op == "minimum";
}

/// The scalar that `value` is everywhere, when it is one.
std::optional<double> number_of(const Graph& graph, Value value) {
  while (graph.node(value).op->name == "broadcast") value = graph.node(value).operands[0];
  const Array* constant = graph.constant_value(value);
  if (!constant || constant->count() != 1) return std::nullopt;
  return constant->at(0);
}

}  // namespace

struct Pattern::Part {
  enum class Kind { any, op, number } kind = Kind::any;
  std::string name;
  const Operator* op = nullptr;
  std::vector<Pattern> operands = {};
  double number = 0;
  std::function<bool(const Graph&, Value)> condition = {};
};

Pattern Pattern::any(std::string name) {
  return Pattern(std::make_shared<Part>(Part{.kind = Part::Kind::any, .name = std::move(name)}));
}

Pattern Pattern::op(std::string_view op, std::vector<Pattern> operands, std::string name) {
  return Pattern(std::make_shared<Part>(Part{.kind = Part::Kind::op,
                                             .name = std::move(name),
                                             .op = &get_operator(op),
                                             .operands = std::move(operands)}));
}

Pattern Pattern::number(double value) {
  return Pattern(std::make_shared<Part>(Part{.kind = Part::Kind::number, .name = "", .number = value}));
}

Pattern Pattern::where(std::function<bool(const Graph&, Value)> condition) const {
  Part part = *part_;
  if (part.condition)
    part.condition = [first = part.condition, second = std::move(condition)](const Graph& graph,
                                                                             Value value) {
      return first(graph, value) && second(graph, value);
    };
  else
    part.condition = std::move(condition);
  return Pattern(std::make_shared<Part>(std::move(part)));
}

std::optional<Match> Pattern::match(const Graph& graph, Value value) const {
  Match match;
  if (!graph.has(value) || !matches(*part_, graph, value, match)) return std::nullopt;
  return match;
}

bool Pattern::operands_match(const Part& part, const Graph& graph, std::span<const Value> operands,
                             Match& match) {
  Match tried = match;
  for (size_t i = 0; i < operands.size(); ++i)
    if (!matches(*part.operands[i].part_, graph, operands[i], tried)) return false;
  match = std::move(tried);
  return true;
}

bool Pattern::matches(const Part& part, const Graph& graph, Value value, Match& match) {
  const Node& node = graph.node(value);
  if (part.kind == Part::Kind::number && number_of(graph, value) != part.number) return false;
  if (part.kind == Part::Kind::op) {
    if (node.op != part.op || value.output != 0 || node.operands.size() != part.operands.size()) return false;
    if (!operands_match(part, graph, node.operands, match)) {
      if (!commutes(node.op->name)) return false;
      const Value turned[] = {node.operands[1], node.operands[0]};
      if (!operands_match(part, graph, turned, match)) return false;
    }
  }
  if (part.condition && !part.condition(graph, value)) return false;
  if (part.name.empty()) return true;
  return match.try_emplace(part.name, value).first->second == value;
}

Graph replace(const Graph& graph, const Pattern& pattern, const Replacement& replacement) {
  if (!replacement) fail<InputError>("replace() needs a replacement");
  Rewriter rewrite(graph);
  rewrite.copy_inputs();
  for (int i = 0; i < graph.size(); ++i) {
    const Value value{i, 0};
    if (rewrite.has(value)) continue;
    rewrite.copy(i);
    std::optional<Match> match = pattern.match(graph, value);
    if (!match) continue;
    for (auto& [name, part] : *match) part = rewrite[part];
    rewrite.graph().set_location(graph.node(i).location);
    const Value made = replacement(rewrite.graph(), *match);
    if (!made.valid()) continue;
    if (!rewrite.graph().has(made)) fail<InputError>("a replacement gave a value that is not of its graph");
    if (rewrite.graph().type(made) != graph.type(value))
      fail<TypeError>("a value of type {} at {} cannot be replaced by one of type {}",
                      graph.type(value).str(), graph.node(i).location.str(),
                      rewrite.graph().type(made).str());
    rewrite.set(value, made);
  }
  return rewrite.finish();
}

Graph capture(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& function,
              std::span<const Type> inputs) {
  if (!function) fail<InputError>("capture() needs a function");
  std::vector<Tensor> symbols;
  for (const Type& type : inputs) symbols.push_back(Tensor::symbol(fmt::format("x{}", symbols.size()), type));
  const std::vector<Tensor> outputs = function(symbols);
  trace::Captured captured = trace::capture(symbols, outputs);
  std::vector<Value> values;
  for (const Tensor& output : outputs)
    values.push_back(captured.values.at({output.node().get(), output.output()}));
  captured.graph.set_outputs(values);
  return std::move(captured.graph);
}

std::vector<Tensor> apply_graph(const Graph& graph, std::span<const Tensor> arguments) {
  if (arguments.size() != graph.inputs().size())
    fail<TypeError>("the graph has {} inputs, but there are {} arguments", graph.inputs().size(),
                    arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (const Type& type = graph.type(graph.inputs()[i]);
        !arguments[i].defined() || arguments[i].type() != type)
      fail<TypeError>("input '{}' of the graph has type {}, its argument {}", graph.input_names()[i],
                      type.str(), arguments[i].defined() ? arguments[i].type().str() : "no value");
  return trace::tensors_of(graph, arguments, std::source_location::current());
}

std::string_view operator_name(const Node& node) { return node.op->name; }

}  // namespace millrace
