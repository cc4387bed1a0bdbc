#include <millrace/operator.h>

#include "base/contains.h"
#include "passes/pass.h"
#include "passes/rules/rule.h"

namespace millrace {

// Local rules (passes/rules/), each at every node once.
Graph simplify(const Graph& graph, const PassContext& context) {
  std::vector<const Rule*> chosen;
  for (const Rule* rule : rules().all())
    if ((rule->exact || !context.exact) && !contains(context.disabled, rule->name)) chosen.push_back(rule);
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    const Node& node = graph.node(i);
    Value simpler;
    if (!node.operands.empty()) {
      rewrite.graph().set_origin(node.origin);
      const std::vector<Value> operands = rewrite.mapped(node.operands);
      for (const Rule* rule : chosen)
        if (simpler = rule->apply(rewrite.graph(), node, operands); simpler.valid()) break;
    }
    if (simpler.valid()) rewrite.set({i, 0}, simpler);
    return simpler.valid();
  });
  return rewrite.finish();
}

MILLRACE_PASS(simplify_whole){.name = "simplify-whole",
                              .doc = "simplify, before composites are taken apart",
                              .place = 20,
                              .run = simplify};
MILLRACE_PASS(simplify){
    .name = "simplify", .doc = "rules (algebra), each at every node once", .place = 40, .run = simplify};
MILLRACE_PASS(simplify_hoisted){
    .name = "simplify-hoisted", .doc = "simplify, of what was hoisted", .place = 120, .run = simplify};

}  // namespace millrace
