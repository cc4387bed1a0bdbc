#include <algorithm>
#include <map>

#include <millrace/operator.h>

#include "ops/scan.h"
#include "passes/loops.h"
#include "passes/pass.h"

namespace millrace {
namespace {

bool is_scan(const Node& node) { return node.op->op_class == OpClass::loop; }

/// Whether two bodies compute the same values, whatever they give out.
bool same_nodes(const Graph& a, const Graph& b) {
  Graph other = a;
  other.set_outputs(b.outputs(), b.output_names());
  return other == b;
}

/// Scans of one body over the same operands become one that gives what all of them give: the forward scan and
/// the one that autodiff adds to save values.
Graph merge_scans(const Graph& graph) {
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    const Node& first = graph.node(i);
    std::vector<int> same = {i};
    for (int j = i + 1; is_scan(first) && j < graph.size(); ++j) {
      const Node& other = graph.node(j);
      if (!is_scan(other) || other.operands != first.operands || !(other.attributes == first.attributes) ||
          !same_nodes(*first.body, *other.body))
        continue;
      const auto carries = first.attributes.integer("carries");
      if (std::equal(first.body->outputs().begin(), first.body->outputs().begin() + carries,
                     other.body->outputs().begin()))
        same.push_back(j);
    }
    if (same.size() == 1) return false;
    const auto carries = static_cast<size_t>(first.attributes.integer("carries"));
    std::vector<Value> outputs = first.body->outputs();
    const auto stack_of = [&](Value value) {
      const auto it = std::find(outputs.begin() + static_cast<int64_t>(carries), outputs.end(), value);
      if (it != outputs.end()) return static_cast<int32_t>(it - outputs.begin());
      outputs.push_back(value);
      return static_cast<int32_t>(outputs.size()) - 1;
    };
    std::map<Value, int32_t> result_of;  // old results → results of the one scan
    for (const int j : same)
      for (size_t r = 0; r < graph.node(j).types.size(); ++r)
        result_of[{j, static_cast<int32_t>(r)}] =
            r < carries ? static_cast<int32_t>(r) : stack_of(graph.node(j).body->outputs()[r]);
    auto body = std::make_shared<Graph>(*first.body);
    body->set_outputs(outputs);
    rewrite.graph().set_location(first.location);
    const Value added = rewrite.graph().add_with_body(*first.op, rewrite.mapped(first.operands),
                                                      first.attributes, std::move(body));
    for (const auto& [old_value, result] : result_of) rewrite.set(old_value, {added.node, result});
    return true;
  });
  return rewrite.finish();
}

/// Copies a scan without the results that are not read, the carries that only served them, and the operands
/// that are then unused. Returns false when there is nothing to drop (nothing was copied).
bool prune(Rewriter& rewrite, int index, const Node& node, const std::vector<char>& read) {
  const ops::Scan s = ops::scan_of(node);
  const Graph& body = *node.body;
  std::vector<char> live(read.begin(), read.begin() + s.carries), needed;
  std::vector<Value> outputs;
  for (bool again = true; again;) {
    again = false;
    outputs.clear();
    for (int r = 0; r < s.carries + s.outputs; ++r)
      if (r < s.carries ? live[r] : read[r]) outputs.push_back(body.outputs()[r]);
    needed = needed_by(body, outputs);
    for (int k = 0; k < s.carries; ++k)
      if (!live[k] && needed[body.inputs()[k].node]) live[k] = again = true;
  }
  std::vector<int> inputs;
  ops::ScanOperands over;
  over.length = s.length;
  over.reverse = s.reverse;
  for (int k = 0; k < static_cast<int>(node.operands.size()); ++k) {
    if (k < s.carries ? !live[k] : !needed[body.inputs()[k].node]) continue;
    inputs.push_back(k);
    (k < s.carries                 ? over.carries
     : k < s.carries + s.sequences ? over.sequences
                                   : over.invariants)
        .push_back(rewrite[node.operands[k]]);
  }
  if (outputs.size() == body.outputs().size() && inputs.size() == node.operands.size()) return false;
  if (outputs.empty()) return false;  // dead as a whole: left to dead-code elimination
  rewrite.graph().set_location(node.location);
  Value next = ops::add_scan(rewrite.graph(), over, part_of_body(body, inputs, outputs));
  for (int r = 0; r < s.carries + s.outputs; ++r) {
    if (!(r < s.carries ? live[r] : read[r])) continue;
    rewrite.set({index, r}, next);
    ++next.output;
  }
  return true;
}

Graph prune_scans(const Graph& graph, bool& changed) {
  std::vector<std::vector<char>> read(graph.size());
  for (int i = 0; i < graph.size(); ++i) read[i].resize(graph.node(i).types.size());
  for (int i = 0; i < graph.size(); ++i)
    for (const Value& operand : graph.node(i).operands) read[operand.node][operand.output] = 1;
  for (const Value& output : graph.outputs()) read[output.node][output.output] = 1;
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    const bool pruned = is_scan(graph.node(i)) && prune(rewrite, i, graph.node(i), read[i]);
    changed |= pruned;
    return pruned;
  });
  return rewrite.finish();
}

}  // namespace

// Scans that share body and operands become one; results that are not read are dropped, with what only they
// need.
static Graph tidy_scans(const Graph& graph, const PassContext& context) {
  bool any = false;
  for (int i = 0; i < graph.size(); ++i) any = any || is_scan(graph.node(i));
  if (!any) return graph;
  Graph result = merge_scans(eliminate_dead(graph, context));
  for (bool changed = true; changed;) {
    changed = false;
    result = prune_scans(eliminate_dead(result, context), changed);
  }
  return result;
}

MILLRACE_PASS(scan){.name = "scan",
                    .doc = "scans that share body and operands become one; results that nobody reads go",
                    .place = 10,
                    .run = tidy_scans};
MILLRACE_PASS(rescan){.name = "rescan", .doc = "scan, once more", .place = 150, .run = tidy_scans};

}  // namespace millrace
