#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <millrace/operator.h>

#include "base/format.h"
#include "passes/pass.h"

namespace millrace {
namespace {

constexpr int kMixed = -1, kFixed = -2;  // instead of a parameter

class Keeper {
 public:
  Keeper(const Graph& graph, Copies& copies) : graph_(graph), copies_(copies), rewrite_(graph) {
    for (const auto& [output, input] : copies.donations) output_of_[input] = output;
    trace_sources();
  }

  Graph run() {
    find();
    if (copies_.repeat) return repeat();
    if (kept_.empty()) return graph_;
    rewrite_.copy_inputs();
    for (const Value& value : kept_) {
      const int parameter = source_[value.node];
      rewrite_.set(value,
                   rewrite_.graph().input(fmt::format("{} for products", graph_.input_names()[parameter]),
                                          graph_.type(value)));
    }
    for (int i = 0; i < graph_.size(); ++i)
      if (!rewrite_.has({i, 0})) rewrite_.copy(i);
    derive_new();
    make_from_parameters();
    Graph kept = rewrite_.finish();
    std::vector<Value> outputs = kept.outputs();
    std::vector<std::string> names = kept.output_names();
    names.resize(outputs.size());
    for (size_t i = 0; i < kept_.size(); ++i) {
      copies_.donations[static_cast<int>(outputs.size())] = static_cast<int>(graph_.inputs().size() + i);
      outputs.push_back(fresh_[i]);
      names.emplace_back();
    }
    kept.set_outputs(std::move(outputs), std::move(names));
    return kept;
  }

 private:
  /// Of each node the one parameter that its results are computed from.
  void trace_sources() {
    source_.assign(graph_.size(), kMixed);
    for (size_t k = 0; k < graph_.inputs().size(); ++k)
      if (output_of_.contains(static_cast<int>(k))) source_[graph_.inputs()[k].node] = static_cast<int>(k);
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      if (node.op->is_given()) {
        if (graph_.constant_value({i, 0})) source_[i] = kFixed;
      } else if (computes(node)) {
        int source = kFixed;
        for (const Value& operand : node.operands) {
          const int from = source_[operand.node];
          if (from != kFixed) source = source == kFixed || source == from ? from : kMixed;
        }
        source_[i] = source;
      }
    }
  }

  static bool computes(const Node& node) {
    return node.op->op_class == OpClass::elementwise || node.op->op_class == OpClass::movement ||
           node.op->op_class == OpClass::view;
  }
  /// Fused with what it reads.
  static bool fusible(const Node& node) {
    return computes(node) || node.op->op_class == OpClass::reduction ||
           node.op->op_class == OpClass::generator;
  }

  /// What is stored for the value: what views and transposes of it are read from.
  Value stored(Value value) const {
    while (graph_.node(value).op->op_class == OpClass::view ||
           graph_.node(value).op->op_class == OpClass::movement)
      value = graph_.node(value).operands[0];
    return value;
  }

  void find() {
    std::vector<char> seen(graph_.size(), 0);
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& reader = graph_.node(i);
      if (fusible(reader)) continue;
      for (const Value& operand : reader.operands) {
        if (source_[operand.node] < 0) continue;
        const Value value = stored(operand);
        if (source_[value.node] < 0 || graph_.is_input(value) || seen[value.node]) continue;
        seen[value.node] = 1;
        std::string why_not = copies_.repeat ? "would take more memory than fp32" : reason_against(value);
        if (const auto refused = copies_.refused.find(static_cast<int>(copies_.copies.size()));
            refused != copies_.refused.end())
          why_not = refused->second;
        if (why_not.empty()) kept_.push_back(value);
        copies_.copies.push_back({graph_.input_names()[source_[value.node]], graph_.type(value),
                                  reader.origin, std::move(why_not)});
      }
    }
  }

  std::string reason_against(Value value) const {
    const int parameter = source_[value.node];
    const Value next = graph_.outputs()[output_of_.at(parameter)];
    if (graph_.node(next).op->op_class != OpClass::elementwise) return "not all of the parameter is updated";
    if (graph_.type(value).bytes() > graph_.type(graph_.inputs()[parameter]).bytes())
      return "larger than the parameter";
    return {};
  }

  /// The value computed in `to` again, from what `known` has instead of old values.
  Value again(Graph& to, Value value, std::map<Value, Value>& known) const {
    if (const auto at = known.find(value); at != known.end()) return at->second;
    std::vector<Value> operands;
    for (const Value& operand : graph_.node(value).operands) operands.push_back(again(to, operand, known));
    return known[value] = {to.add_copy(graph_, value.node, std::move(operands)).node, value.output};
  }

  /// What replaces each copy: the same of the new parameter.
  void derive_new() {
    std::map<Value, Value> known;
    for (const Value& value : kept_) {
      const int parameter = source_[value.node];
      known[graph_.inputs()[parameter]] = rewrite_[graph_.outputs()[output_of_.at(parameter)]];
      rewrite_.graph().set_origin(graph_.node(value).origin.in_phase(Phase::update));
      fresh_.push_back(again(rewrite_.graph(), value, known));
    }
  }

  void make_from_parameters() {
    std::map<Value, Value> known;
    std::vector<Value> outputs;
    for (const Value& value : kept_) {
      const int parameter = source_[value.node];
      const Value input = graph_.inputs()[parameter];
      if (!known.contains(input)) {
        known[input] = copies_.make.input(graph_.input_names()[parameter], graph_.type(input));
        copies_.parameters.push_back(parameter);
      }
      copies_.make.set_origin(graph_.node(value).origin);
      outputs.push_back(again(copies_.make, value, known));
    }
    copies_.make.set_outputs(std::move(outputs));
  }

  /// What is read of a parameter alone each reader makes for itself, so that it is there no longer than it
  /// must.
  Graph repeat() {
    rewrite_.go_through([&](int i) {
      const Node& node = graph_.node(i);
      if (fusible(node) || node.body) return false;
      copy_with_own_operands(i);
      return true;
    });
    return rewrite_.finish();
  }

  void copy_with_own_operands(int i) {
    const Node& node = graph_.node(i);
    Graph& to = rewrite_.graph();
    std::vector<Value> operands = rewrite_.mapped(node.operands);
    to.set_origin(node.origin.repeated(node.origin.phase));
    for (size_t k = 0; k < operands.size(); ++k) {
      const int source = source_[node.operands[k].node];
      if (source < 0 || graph_.is_input(stored(node.operands[k]))) continue;
      const Value parameter = graph_.inputs()[source];
      std::map<Value, Value> known{{parameter, rewrite_[parameter]}};
      operands[k] = again(to, node.operands[k], known);
    }
    to.set_origin(node.origin);
    rewrite_.set_all(i, to.add_copy(graph_, i, std::move(operands)));
  }

  const Graph& graph_;
  Copies& copies_;
  Rewriter rewrite_;
  std::map<int, int> output_of_;  // input → the output that replaces it
  std::vector<int> source_;       // of each node: an input, or none
  std::vector<Value> kept_;       // old values
  std::vector<Value> fresh_;      // what replaces them
};

}  // namespace

// What products, convolutions and attention read of a parameter alone (its bf16 copy) is not computed anew in
// every run: the update writes it beside the new parameter, from which it comes in the same way, and the next
// run reads it. Who runs the program sees to it that copies and parameters belong together. Where a step has
// so few items that copies take more memory than bf16 saves, they are made where they are read instead
// (Copies::repeat).
static Graph keep_copies(const Graph& graph, const PassContext& context) {
  if (!context.copies || !context.target.fuses) return graph;
  return Keeper(graph, *context.copies).run();
}

MILLRACE_PASS(keep_copies){.name = "keep-copies",
                           .doc = "bf16 copies of parameters are kept from step to step",
                           .place = 200,
                           .run = keep_copies};

}  // namespace millrace
