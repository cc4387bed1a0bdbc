#include <millrace/operator.h>

#include "ops/body.h"
#include "ops/scan.h"
#include "passes/pass.h"

namespace millrace {
namespace {

/// Folding a broadcast or generator would only turn a small constant into a large one.
bool grows(const Graph& graph, const Node& node) {
  int64_t operands = 1;
  for (const Value& operand : node.operands) operands += graph.type(operand).shape.count();
  int64_t results = 0;
  for (const Type& type : node.types) results += type.shape.count();
  return results > 2 * operands;
}

/// What runs as long as its body says so is left to the program, which can be cancelled.
bool may_not_end(const Node& node) {
  return node.op->op_class == OpClass::loop && ops::scan_of(node).conditional;
}

/// What a constant operand, or one that is broadcast, is in full.
Array constant_of(Rewriter& rewrite, Value operand, const PassContext& context) {
  const Graph& graph = rewrite.graph();
  const Value mapped = rewrite[operand];
  if (const Array* value = graph.constant_value(mapped)) return *value;
  const Node& broadcast = graph.node(mapped);
  const Array from = *graph.constant_value(broadcast.operands[0]);
  return context.evaluate(graph, broadcast, std::span(&from, 1))[0];
}

}  // namespace

// Nodes whose operands are all constants are evaluated now. (What no output needs, such as a weight's
// transpose that its product now reads as it was, would be evaluated for nothing.)
Graph fold_constants(const Graph& graph, const PassContext& context) {
  const std::vector<char> live = ops::needed_by(graph, graph.outputs());
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    const Node& node = graph.node(i);
    bool constant = live[i] && !node.operands.empty() && !grows(graph, node) && !may_not_end(node);
    int stored = 0;  // operands that are constants as they stand, not broadcast ones
    for (const Value& operand : node.operands) {
      const Value mapped = rewrite[operand];
      const Node& producer = rewrite.graph().node(mapped);
      if (rewrite.graph().constant_value(mapped))
        ++stored;
      else if (!producer.op->broadcasts || !rewrite.graph().constant_value(producer.operands[0]))
        constant = false;
    }
    if (!constant || stored == 0) return false;
    std::vector<Array> operands;
    for (const Value& operand : node.operands) operands.push_back(constant_of(rewrite, operand, context));
    const std::vector<Array> results = context.evaluate(graph, node, operands);
    rewrite.graph().set_origin(node.origin);
    for (size_t r = 0; r < results.size(); ++r)
      rewrite.set({i, static_cast<int32_t>(r)}, rewrite.graph().constant(results[r]));
    return true;
  });
  return rewrite.finish();
}

MILLRACE_PASS(fold){.name = "fold",
                    .doc = "nodes whose operands are all constants are evaluated now",
                    .place = 60,
                    .run = fold_constants};
MILLRACE_PASS(refold){
    .name = "refold", .doc = "fold, of what the precision has added", .place = 100, .run = fold_constants};

}  // namespace millrace
