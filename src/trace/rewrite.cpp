#include <source_location>

#include <millrace/operator.h>
#include <millrace/rewrite.h>

#include "base/format.h"
#include "ops/filled.h"
#include "trace/linearise.h"
#include "trace/node.h"

namespace millrace {
namespace {

bool commutes(const Operator& op) {
  return op.is(ScalarOp::add) || op.is(ScalarOp::mul) || op.is(ScalarOp::max) || op.is(ScalarOp::min);
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
  const Operator& found = get_operator(op);
  const auto given = static_cast<int>(operands.size());
  if (given < found.min_operands || (found.max_operands >= 0 && given > found.max_operands))
    fail<InputError>("a pattern of {} with {} operand{} would never match: it takes {} {}", op, given,
                     given == 1 ? "" : "s", given < found.min_operands ? "at least" : "at most",
                     given < found.min_operands ? found.min_operands : found.max_operands);
  return Pattern(std::make_shared<Part>(
      Part{.kind = Part::Kind::op, .name = std::move(name), .op = &found, .operands = std::move(operands)}));
}

Pattern Pattern::number(double value) {
  return Pattern(std::make_shared<Part>(Part{.kind = Part::Kind::number, .name = "", .number = value}));
}

Pattern Pattern::where(std::function<bool(const Graph&, Value)> condition) const {
  if (!condition) fail<InputError>("where() needs a condition");
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
  if (!graph.has(value) || !matches(*part_, graph, value, match, [](Match&) { return true; }))
    return std::nullopt;
  return match;
}

bool Pattern::operands_match(const Part& part, const Graph& graph, std::span<const Value> operands, size_t at,
                             Match& match, const Then& then) {
  if (at == operands.size()) return then(match);
  return matches(*part.operands[at].part_, graph, operands[at], match,
                 [&](Match& m) { return operands_match(part, graph, operands, at + 1, m, then); });
}

// What comes later may not fit the first way in which a part matches but another, so it decides.
bool Pattern::matches(const Part& part, const Graph& graph, Value value, Match& match, const Then& then) {
  const Node& node = graph.node(value);
  if (part.kind == Part::Kind::number && !ops::is_filled_with(graph, value, part.number)) return false;
  const auto named = [&](Match& m) {
    if (part.condition && !part.condition(graph, value)) return false;
    if (part.name.empty()) return then(m);
    const auto [at, fresh] = m.try_emplace(part.name, value);
    if (at->second == value && then(m)) return true;
    if (fresh) m.erase(part.name);
    return false;
  };
  if (part.kind != Part::Kind::op) return named(match);
  if (node.op != part.op || value.output != 0 || node.operands.size() != part.operands.size()) return false;
  if (operands_match(part, graph, node.operands, 0, match, named)) return true;
  if (!commutes(*node.op)) return false;
  const Value turned[] = {node.operands[1], node.operands[0]};
  return operands_match(part, graph, turned, 0, match, named);
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
    rewrite.graph().set_origin(graph.node(i).origin);
    const Value made = replacement(rewrite.graph(), *match);
    if (!made.valid()) continue;
    if (!rewrite.graph().has(made)) fail<InputError>("a replacement gave a value that is not of its graph");
    if (rewrite.graph().type(made) != graph.type(value))
      fail<TypeError>("a value of type {} at {} cannot be replaced by one of type {}",
                      graph.type(value).str(), graph.node(i).origin.str(), rewrite.graph().type(made).str());
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
  captured.graph.set_outputs(captured.values_of(outputs));
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
