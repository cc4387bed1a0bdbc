#include <algorithm>
#include <map>
#include <memory>

#include <millrace/narrow_types.h>
#include <millrace/operator.h>

#include "base/contains.h"
#include "ops/body.h"
#include "ops/build.h"
#include "ops/cond.h"
#include "ops/scan.h"
#include "passes/pass.h"

namespace millrace {
namespace {

bool is_loop(const Node& node) { return node.op->op_class == OpClass::loop; }
bool is_branch(const Node& node) { return node.op->op_class == OpClass::branch; }

/// Whether two bodies compute the same values, whatever they give out.
bool same_nodes(const Graph& a, const Graph& b) {
  Graph other = a;
  other.set_outputs(b.outputs(), b.output_names());
  return other == b;
}

/// Loops of one body over the same operands become one that gives what all of them give: the forward scan and
/// the one that autodiff adds to save values.
Graph merge_scans(const Graph& graph) {
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    const Node& first = graph.node(i);
    std::vector<int> same = {i};
    for (int j = i + 1; is_loop(first) && j < graph.size(); ++j) {
      const Node& other = graph.node(j);
      if (other.op != first.op || other.operands != first.operands ||
          !(other.attributes == first.attributes) || !same_nodes(*first.body, *other.body))
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
    rewrite.graph().set_origin(first.origin);
    const Value added = rewrite.graph().add_with_body(*first.op, rewrite.mapped(first.operands),
                                                      first.attributes, std::move(body));
    for (const auto& [old_value, result] : result_of) rewrite.set(old_value, {added.node, result});
    return true;
  });
  return rewrite.finish();
}

/// The results of node `index` that are `live` are `next` and those behind it.
void set_live(Rewriter& rewrite, int index, const std::vector<char>& live, Value next) {
  for (size_t r = 0; r < live.size(); ++r) {
    if (!live[r]) continue;
    rewrite.set({index, static_cast<int32_t>(r)}, next);
    ++next.output;
  }
}

/// Copies a loop without the results that are not read, the carries that only served them, and the operands
/// that are then unused. Returns false when there is nothing to drop (nothing was copied).
bool prune(Rewriter& rewrite, int index, const Node& node, const std::vector<char>& read) {
  const ops::Scan s = ops::scan_of(node);
  const Graph& body = *node.body;
  std::vector<char> live = read, needed;
  if (s.conditional) live[0] = 1;
  std::vector<Value> outputs;
  for (bool again = true; again;) {
    again = false;
    outputs.clear();
    for (size_t r = 0; r < live.size(); ++r)
      if (live[r]) outputs.push_back(body.outputs()[r]);
    needed = ops::needed_by(body, outputs);
    for (int k = 0; k < s.carries; ++k)
      if (!live[k] && needed[body.inputs()[k].node]) live[k] = again = true;
  }
  std::vector<int> inputs;
  ops::ScanOperands over{{}, {}, {}, s.length, s.reverse, s.conditional};
  for (int k = 0; k < static_cast<int>(node.operands.size()); ++k) {
    if (k < s.carries ? !live[k] : !needed[body.inputs()[k].node]) continue;
    inputs.push_back(k);
    (k < s.carries                 ? over.carries
     : k < s.carries + s.sequences ? over.sequences
                                   : over.invariants)
        .push_back(rewrite[node.operands[k]]);
  }
  if (outputs.size() == body.outputs().size() && inputs.size() == node.operands.size()) return false;
  if (outputs.empty() || !contains(read, 1)) return false;  // dead as a whole: left to dead-code elimination
  rewrite.graph().set_origin(node.origin);
  set_live(rewrite, index, live,
           ops::add_scan(rewrite.graph(), over,
                         std::make_shared<const Graph>(ops::part_of_body(body, inputs, outputs))));
  return true;
}

/// Copies a cond without the results that are not read and the operands that no branch needs; operands that
/// are constants stand in the branches then, where kernels pack them once. False when nothing changes.
bool prune_cond(Rewriter& rewrite, int index, const Node& node, const std::vector<char>& read) {
  const Graph& body = *node.body;
  const size_t results = node.types.size();
  std::vector<Value> outputs;
  for (const size_t half : {size_t{0}, results})
    for (size_t r = 0; r < results; ++r)
      if (read[r]) outputs.push_back(body.outputs()[half + r]);
  const std::vector<char> needed = ops::needed_by(body, outputs);
  Rewriter inner(body);
  std::vector<Value> operands;
  for (size_t k = 0; k < body.inputs().size(); ++k) {
    const Value input = body.inputs()[k], operand = rewrite[node.operands[k + 1]];
    if (!needed[input.node]) continue;
    if (const Array* constant = rewrite.graph().constant_value(operand)) {
      inner.set(input, inner.graph().constant(*constant));
      continue;
    }
    inner.set(input, inner.graph().input(body.input_names()[k], body.type(input)));
    operands.push_back(operand);
  }
  if (outputs.empty() || (outputs.size() == body.outputs().size() && operands.size() == body.inputs().size()))
    return false;
  for (int i = 0; i < body.size(); ++i)
    if (needed[i] && !inner.has({i, 0})) inner.copy(i);
  inner.graph().set_origin("");
  inner.graph().set_outputs(inner.mapped(outputs));
  rewrite.graph().set_origin(node.origin);
  set_live(rewrite, index, read,
           ops::add_cond(rewrite.graph(), rewrite[node.operands[0]], operands,
                         std::make_shared<const Graph>(std::move(inner.graph()))));
  return true;
}

/// Whether a branch costs so little that it is computed rather than chosen: a handful of element-wise
/// operators on little data, which become part of the loop nests around it.
bool is_little(const Graph& body) {
  constexpr int most_nodes = 32;
  constexpr int64_t most_elements = 1 << 12;
  int nodes = 0;
  for (int i = 0; i < body.size(); ++i) {
    const Node& node = body.node(i);
    if (node.op->is_given()) continue;
    if (++nodes > most_nodes || node.op->op_class == OpClass::heavy || node.op->runs_body() ||
        node.types[0].shape.count() > most_elements)
      return false;
    if (node.body && !is_little(*node.body)) return false;
  }
  return true;
}

/// A cond whose condition is a constant becomes its branch; of one whose branches cost little both are
/// computed. False when it stays.
bool inline_cond(Rewriter& rewrite, int index, const Node& node) {
  const Array* known = rewrite.graph().constant_value(rewrite[node.operands[0]]);
  const bool selectable = std::none_of(node.types.begin(), node.types.end(),
                                       [](const Type& type) { return is_only_stored(type.dtype); });
  if (!known && (!selectable || !is_little(*node.body))) return false;
  const std::vector<Value> all = rewrite.mapped(node.operands);
  rewrite.graph().set_origin(node.origin);
  const auto branch = [&](bool first) {
    return inline_graph(rewrite.graph(), ops::branch_of(*node.body, first), std::span(all).subspan(1));
  };
  std::vector<Value> results = branch(!known || known->at(0) != 0);
  if (!known) {
    const std::vector<Value> others = branch(false);
    ops::Build b(rewrite.graph());
    rewrite.graph().set_origin(node.origin);
    for (size_t r = 0; r < results.size(); ++r) results[r] = b.select(all[0], results[r], others[r]);
  }
  for (size_t r = 0; r < results.size(); ++r) rewrite.set({index, static_cast<int32_t>(r)}, results[r]);
  return true;
}

Graph prune_all(const Graph& graph, bool& changed) {
  std::vector<std::vector<char>> read(graph.size());
  for (int i = 0; i < graph.size(); ++i) read[i].resize(graph.node(i).types.size());
  for (int i = 0; i < graph.size(); ++i)
    for (const Value& operand : graph.node(i).operands) read[operand.node][operand.output] = 1;
  for (const Value& output : graph.outputs()) read[output.node][output.output] = 1;
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    const Node& node = graph.node(i);
    const bool done = is_branch(node) ? inline_cond(rewrite, i, node) || prune_cond(rewrite, i, node, read[i])
                                      : is_loop(node) && prune(rewrite, i, node, read[i]);
    changed |= done;
    return done;
  });
  return rewrite.finish();
}

}  // namespace

// Loops that share body and operands become one; results of control flow that are not read are dropped, with
// what only they need; a cond whose condition is known becomes its branch.
static Graph tidy_control_flow(const Graph& graph, const PassContext& context) {
  bool any = false;
  for (int i = 0; i < graph.size(); ++i) any = any || graph.node(i).op->runs_body();
  if (!any) return graph;
  Graph result = merge_scans(eliminate_dead(graph, context));
  for (bool changed = true; changed;) {
    changed = false;
    result = prune_all(eliminate_dead(result, context), changed);
  }
  return result;
}

MILLRACE_PASS(scan){.name = "scan",
                    .doc =
                        "loops that share body and operands become one; results that nobody reads go, and "
                        "conds whose condition is known",
                    .place = 10,
                    .run = tidy_control_flow};
MILLRACE_PASS(rescan){.name = "rescan", .doc = "scan, once more", .place = 150, .run = tidy_control_flow};

}  // namespace millrace
