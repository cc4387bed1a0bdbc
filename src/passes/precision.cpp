#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <millrace/operator.h>

#include "base/format.h"
#include "ops/build.h"
#include "ops/work.h"
#include "passes/pass.h"

namespace millrace {
namespace {

// Less takes a few microseconds, which is hardly measured and hardly matters.
constexpr double kLeastFlops = 1 << 20;

/// The value that `value` was cast from bf16 to f32, when it was.
std::optional<Value> before_widening(const Graph& graph, Value value) {
  const Node& node = graph.node(value);
  if (!node.op->converts || graph.type(node.operands[0]).dtype != bf16) return std::nullopt;
  return node.operands[0];
}

/// A bf16 copy of `value`, made before the reshapes that led to it, where the operators are that it can fuse
/// with.
Value narrowed(Graph& graph, Value value) {
  if (const auto narrow = before_widening(graph, value)) return *narrow;
  const Node& node = graph.node(value);
  if (!node.op->reshapes()) return graph.add("cast", {value}, {{"dtype", bf16}});
  const Shape shape = node.types[0].shape;
  return graph.add("reshape", {narrowed(graph, node.operands[0])}, {{"shape", shape}});
}

/// The value that views of it were made of.
Value behind_reshapes(const Graph& graph, Value value) {
  while (graph.node(value).op->reshapes()) value = graph.node(value).operands[0];
  return value;
}

class Narrower {
 public:
  Narrower(const Graph& graph, const PassContext& context)
      : graph_(graph),
        context_(context),
        rewrite_(graph),
        to_(rewrite_.graph()),
        readers_(graph.size()),
        others_(graph.size(), 0) {
    for (int i = 0; i < graph.size(); ++i) {
      for (size_t k = narrow_operands(graph.node(i)); k < graph.node(i).operands.size(); ++k)
        others_[graph.node(i).operands[k].node] = 1;
      for (size_t k = 0; k < narrow_operands(graph.node(i)); ++k)
        readers_[behind_reshapes(graph, graph.node(i).operands[k]).node].insert(i);
    }
    for (const Value& output : graph.outputs()) others_[output.node] = 1;
  }

  Graph run() {
    rewrite_.go_through([&](int i) { return move_cast(i) || narrow(i); });
    return rewrite_.finish();
  }

 private:
  /// A product's cast to f32 moves behind a reshape, to whoever reads.
  bool move_cast(int i) {
    const Node& node = graph_.node(i);
    if (!node.op->reshapes()) return false;
    const auto narrow = before_widening(to_, rewrite_[node.operands[0]]);
    if (!narrow) return false;
    to_.set_origin(node.origin);
    const Value moved = to_.add("reshape", {*narrow}, {{"shape", node.types[0].shape}});
    rewrite_.set({i, 0}, to_.add("cast", {moved}, {{"dtype", f32}}));
    return true;
  }

  bool narrow(int i) {
    const Node& node = graph_.node(i);
    const size_t count = narrow_operands(node);
    if (count == 0 || node.types[0].dtype != f32 || is_faster_wide(i)) return false;
    to_.set_origin(node.origin);
    std::vector<Value> operands = rewrite_.mapped(node.operands);
    for (size_t k = 0; k < count; ++k) operands[k] = narrowed(to_, operands[k]);
    const Value first = to_.add(*node.op, operands, node.attributes);
    for (int32_t r = 0; r < static_cast<int32_t>(node.types.size()); ++r)
      rewrite_.set({i, r}, ops::Build(to_).cast({first.node, r}, f32));
    return true;
  }

  /// What an operand is there as when a product reads it.
  enum class There { as_either, as_f32, as_bf16 };

  /// Whoever computes a value in a loop nest writes it as its readers want it, and so does the update of a
  /// parameter; of an input a copy must be made, which is free for whoever shares it.
  There there(Value operand) const {
    if (before_widening(to_, rewrite_[operand])) return There::as_bf16;
    const Value made = behind_reshapes(graph_, operand);
    if (context_.in_loop || readers_[made.node].size() > 1) return There::as_either;
    if (graph_.is_input(made)) return is_donated(made) ? There::as_either : There::as_f32;
    return has_kernel(graph_.node(made)) ? There::as_f32 : There::as_either;
  }

  /// Composites that are still there are claimed whole.
  static bool has_kernel(const Node& node) {
    return node.op->op_class == OpClass::heavy || node.op->op_class == OpClass::composite;
  }

  /// Whether nobody but products reads the node: where it gives f32, one more launch must narrow that.
  bool goes_on_narrow(int i) const { return !readers_[i].empty() && !others_[i]; }

  bool is_donated(Value input) const {
    if (!context_.copies) return false;
    return std::any_of(context_.copies->donations.begin(), context_.copies->donations.end(),
                       [&](const auto& donation) { return graph_.inputs()[donation.second] == input; });
  }

  bool is_faster_wide(int i) const {
    const Node& node = graph_.node(i);
    if (context_.exact || !context_.faster || ops::flops(graph_, node) < kLeastFlops) return false;
    std::string problem = fmt::format("bf16 or f32: {}", node.op->name);
    const size_t narrow = narrow_operands(node);
    for (size_t k = 0; k < node.operands.size(); ++k) {
      problem += " " + graph_.type(node.operands[k]).shape.str();
      if (k < narrow && there(node.operands[k]) != There::as_either)
        problem += there(node.operands[k]) == There::as_f32 ? " of f32" : " of bf16";
    }
    for (const auto& [name, value] : node.attributes.items())
      if (const auto* list = std::get_if<std::vector<int64_t>>(&value))
        problem += fmt::format(" {}={}", name, fmt::join(*list, ","));
      else if (const auto* number = std::get_if<int64_t>(&value))
        problem += fmt::format(" {}={}", name, *number);
      else if (const auto* flag = std::get_if<bool>(&value); flag && *flag)
        problem += fmt::format(" {}", name);
    if (goes_on_narrow(i)) problem += " to bf16";
    return context_.faster(problem, {"bf16", form(i, bf16)}, {kWide, form(i, f32)});
  }

  /// The node as a graph of its own, each result read once, as in a step.
  Graph form(int i, DType dtype) const {
    const Node& node = graph_.node(i);
    Graph graph;
    ops::Build b(graph);
    std::map<Value, Value> inputs;
    std::vector<Value> operands;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const Value operand = node.operands[k];
      Type type = graph_.type(operand);
      if (const auto known = inputs.find(operand); known != inputs.end()) {
        operands.push_back(known->second);
        continue;
      }
      const bool narrows = k < narrow_operands(node);
      const There is = narrows ? there(operand) : There::as_either;
      if (narrows) type.dtype = is == There::as_bf16 ? bf16 : is == There::as_f32 ? f32 : dtype;
      const Value input = graph.input(fmt::format("x{}", k), type);
      operands.push_back(inputs[operand] = narrows ? b.cast(input, dtype) : input);
    }
    const Value first = graph.add(*node.op, operands, node.attributes);
    std::vector<Value> results;
    for (int32_t r = 0; r < static_cast<int32_t>(node.types.size()); ++r) {
      const DType wanted = goes_on_narrow(i) ? bf16 : f32;
      const Value result = b.cast({first.node, r}, wanted);
      results.push_back(wanted == bf16 ? result : graph.add("relu", {result}));
    }
    graph.set_outputs(std::move(results));
    return graph;
  }

  const Graph& graph_;
  const PassContext& context_;
  Rewriter rewrite_;
  Graph& to_;
  std::vector<std::set<int>> readers_;  // of each node: those that would narrow it, views of it included
  std::vector<char> others_;            // of each node: whether anyone else reads it
};

}  // namespace

// Mixed precision: matrix products, convolutions and attention of f32 operands run on bf16 copies (sums in
// f32 inside) and give bf16, but where they are measured to run faster in f32; everything else, and all that
// is stored between steps, stays f32. The casts fuse into their neighbours.
static Graph narrow_to_bf16(const Graph& graph, const PassContext& context) {
  if (context.precision != "bf16") return graph;
  return Narrower(graph, context).run();
}

MILLRACE_PASS(precision){.name = "precision",
                         .doc = "bf16: matrix products, convolutions and attention run on bf16 copies",
                         .place = 80,
                         .run = narrow_to_bf16};

}  // namespace millrace
