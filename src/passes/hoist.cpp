#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <millrace/operator.h>

#include "base/contains.h"
#include "base/format.h"
#include "ir/values.h"
#include "ops/body.h"
#include "ops/build.h"
#include "ops/matmul.h"
#include "ops/scan.h"
#include "passes/batch_steps.h"
#include "passes/pass.h"

namespace millrace {
namespace {

/// Operators worth leaving a loop for: one large product of all steps' rows instead of one a step.
bool heavy(const Node& node) { return node.op->op_class == OpClass::heavy; }

/// Costs nothing where it is, and memory elsewhere.
bool trivial(const Node& node) {
  return node.op->is_given() || node.op->op_class == OpClass::view || node.op->repeat == Repeat::free;
}

/// Products of a carried value with a transposed invariant, as products with its transpose, which leaves the
/// loop. Not so `constants`: kernels pack those as they lie.
Graph straighten(const Graph& body, const ops::Scan& s, const std::vector<Value>& constants) {
  const std::span inputs(body.inputs());
  const auto invariants = inputs.subspan(s.carries + s.sequences);
  const std::vector<char> carried = ops::reached_from(body, inputs.first(s.carries));
  Rewriter rewrite(body);
  rewrite.go_through([&](int i) {
    const Node& node = body.node(i);
    const auto product = ops::matmul_of(node);
    const bool turn = product && product->transpose_b && contains(invariants, node.operands[1]) &&
                      !contains(constants, node.operands[1]) && carried[node.operands[0].node] &&
                      node.types[0].shape.rank() == 2;
    if (!turn) return false;
    ops::Build b(rewrite.graph());
    rewrite.graph().set_origin(node.origin);
    const Value turned = b.transpose(rewrite[node.operands[1]], {1, 0});
    rewrite.set({i, 0}, b.matmul(rewrite[node.operands[0]], turned, product->transpose_a));
    return true;
  });
  return rewrite.finish();
}

/// Splits one scan into what is computed before it, the loop, and what is computed behind it.
class Split {
 public:
  /// `exact`: sums keep their order, so they stay in the loop.
  Split(const Node& node, Graph body, Rewriter& rewrite, bool exact)
      : node_(node), s_(ops::scan_of(node)), body_(std::move(body)), rewrite_(rewrite) {
    classify();
    adds_.assign(body_.size(), 0);
    if (!exact && !s_.conditional) find_sums();  // a while_loop may run fewer steps than there are positions
    choose_before();
    choose_behind();
  }

  bool changes() const { return !sums_.empty() || !entering_.empty() || any_behind_; }

  /// Emits all three; returns the values of the node's results.
  std::vector<Value> emit() {
    Graph& to = rewrite_.graph();
    StepBatcher batcher(body_, stacked_, s_.length.size(), to);
    for (int k = s_.carries; k < static_cast<int>(node_.operands.size()); ++k)
      batcher.set(body_.inputs()[k], rewrite_[node_.operands[k]]);
    const Value scan = emit_loop(batcher);
    int32_t next = static_cast<int32_t>(kept_carries_.size());
    std::vector<Value> results(node_.types.size());
    for (size_t k = 0; k < kept_carries_.size(); ++k)
      results[kept_carries_[k]] = {scan.node, static_cast<int32_t>(k)};
    if (s_.conditional) {  // all that it stacks, as it is: what was not run is zero
      for (int k = s_.carries; k < s_.carries + s_.outputs; ++k) results[k] = {scan.node, next++};
      return results;
    }
    for (const Value& value : leaving_) batcher.set(value, {scan.node, next++});
    ops::Build b(to);
    for (const Sum& sum : sums_) {
      const Value total = batcher.sum_over_steps(sum.term);
      results[sum.carry] = b.add(rewrite_[node_.operands[sum.carry]], total);
    }
    for (int k = s_.carries; k < s_.carries + s_.outputs; ++k) {
      const Value output = body_.outputs()[k];
      const Value value = batcher.emit(output);
      results[k] = stacked_[output.node] ? value : b.broadcast(value, node_.types[k].shape);
    }
    return results;
  }

 private:
  /// A carry that only adds up a term in each step.
  struct Sum {
    int carry;
    int adds;  // the node that adds
    Value term;
  };

  void classify() {
    const std::span inputs(body_.inputs());
    carried_ = ops::reached_from(body_, inputs.first(s_.carries));
    stepped_ = ops::reached_from(body_, inputs.subspan(s_.carries, s_.sequences));
    stacked_ = ops::reached_from(body_, inputs.first(s_.carries + s_.sequences));
    users_ = users_of(body_);
    as_carry_.assign(body_.size(), 0);
    as_output_.assign(body_.size(), 0);
    for (int k = 0; k < s_.carries + s_.outputs; ++k)
      ++(k < s_.carries ? as_carry_ : as_output_)[body_.outputs()[k].node];
  }

  void find_sums() {
    for (int k = 0; k < s_.carries; ++k) {
      const Value carry = body_.inputs()[k], next = body_.outputs()[k];
      const Node& node = body_.node(next);
      if (!node.op->is(ScalarOp::add) || !users_[next.node].empty() || as_carry_[next.node] != 1 ||
          as_output_[next.node] != 0 || as_carry_[carry.node] != 0 || as_output_[carry.node] != 0 ||
          users_[carry.node] != std::vector<int>{next.node})
        continue;
      const Value term = node.operands[0] == carry ? node.operands[1] : node.operands[0];
      if (term == carry) continue;
      candidates_.push_back({k, next.node, term});
      adds_[next.node] = 1;
    }
  }

  /// What does not depend on a carry and is worth it: `entering_` are the values that the loop then reads.
  void choose_before() {
    possible_before_.assign(body_.size(), 0);
    before_.assign(body_.size(), 0);
    for (int i = 0; i < body_.size(); ++i) {
      const Node& node = body_.node(i);
      if (carried_[i]) continue;
      possible_before_[i] = StepBatcher::can_batch(body_, node, stacked_);
      for (const Value& operand : node.operands) possible_before_[i] &= possible_before_[operand.node];
      before_[i] = possible_before_[i] && (stepped_[i] ? heavy(node) : !trivial(node));
    }
  }

  /// What only feeds stacks and sums, from the first operator on that is worth it.
  void choose_behind() {
    sinkable_.assign(body_.size(), 0);
    std::vector<char> only_sums(body_.size(), 0);
    for (int i = body_.size() - 1; i >= 0; --i) {
      const Node& node = body_.node(i);
      if (!stacked_[i] || adds_[i] || as_carry_[i] || body_.is_input({i, 0}) || before_[i]) continue;
      if (!StepBatcher::can_batch(body_, node, stacked_)) continue;
      sinkable_[i] =
          std::all_of(users_[i].begin(), users_[i].end(), [&](int u) { return adds_[u] || sinkable_[u]; });
      only_sums[i] =
          sinkable_[i] && as_output_[i] == 0 &&
          std::all_of(users_[i].begin(), users_[i].end(), [&](int u) { return adds_[u] || only_sums[u]; });
    }
    behind_.assign(body_.size(), 0);
    for (int i = 0; i < body_.size(); ++i) {
      if (!sinkable_[i] || s_.conditional) continue;
      const Node& node = body_.node(i);
      // A sum over rows and steps reads a stack that is mostly there for a product anyway.
      const bool worth = heavy(node) || (only_sums[i] && node.op->op_class == OpClass::reduction);
      behind_[i] = worth || std::any_of(node.operands.begin(), node.operands.end(),
                                        [&](const Value& operand) { return behind_[operand.node] != 0; });
      any_behind_ = any_behind_ || behind_[i];
    }
    for (const Sum& sum : candidates_)
      if (behind_[sum.term.node] || (before_[sum.term.node] && stepped_[sum.term.node])) sums_.push_back(sum);
    find_borders();
  }

  bool summed(int add) const {
    return std::any_of(sums_.begin(), sums_.end(), [&](const Sum& sum) { return sum.adds == add; });
  }
  bool in_loop(int i) const {
    return !body_.is_input({i, 0}) && !before_[i] && !behind_[i] && !summed(i) && needed_[i];
  }

  static void insert(std::vector<Value>& values, Value value) {
    if (!contains(values, value)) values.push_back(value);
  }

  /// The values that the loop reads from before it, and those that what stands behind reads from the loop.
  void find_borders() {
    for (int k = 0; k < s_.carries; ++k)
      if (std::none_of(sums_.begin(), sums_.end(), [&](const Sum& sum) { return sum.carry == k; }))
        kept_carries_.push_back(k);
    // Behind: operands that are neither behind nor computable without the loop.
    const auto leave = [&](Value value) {
      if (!behind_[value.node] && (carried_[value.node] || !possible_before_[value.node]))
        insert(leaving_, value);
    };
    for (int i = 0; i < body_.size(); ++i)
      if (behind_[i])
        for (const Value& operand : body_.node(i).operands) leave(operand);
    for (int k = s_.carries; k < s_.carries + s_.outputs; ++k)
      if (s_.conditional)
        leaving_.push_back(body_.outputs()[k]);
      else
        leave(body_.outputs()[k]);
    std::vector<Value> roots = leaving_;
    for (const int k : kept_carries_) roots.push_back(body_.outputs()[k]);
    needed_.assign(body_.size(), 0);
    for (const Value& value : roots) mark(value);
    for (int i = body_.size() - 1; i >= 0; --i)
      if (in_loop(i))
        for (const Value& operand : body_.node(i).operands) mark(operand);
  }

  void mark(Value value) {
    needed_[value.node] = 1;
    if (before_[value.node]) insert(entering_, value);
  }

  Value emit_loop(StepBatcher& batcher) {
    ops::ScanOperands over{{}, {}, {}, s_.length, s_.reverse, s_.conditional};
    Rewriter inner(body_);
    Graph& loop = inner.graph();
    for (const int k : kept_carries_) {
      over.carries.push_back(rewrite_[node_.operands[k]]);
      inner.set(body_.inputs()[k], loop.input(fmt::format("carry{}", k), body_.type(body_.inputs()[k])));
    }
    for (const bool stepped : {true, false}) {
      auto& list = stepped ? over.sequences : over.invariants;
      const auto enter = [&](Value value) {
        if ((stepped_[value.node] != 0) != stepped) return;
        list.push_back(batcher.emit(value));
        const std::string name = fmt::format("{}{}", stepped ? "slice" : "fixed", list.size());
        inner.set(value, loop.input(name, body_.type(value)));
      };
      for (int k = s_.carries; k < static_cast<int>(body_.inputs().size()); ++k)
        if (needed_[body_.inputs()[k].node]) enter(body_.inputs()[k]);
      for (const Value& value : entering_) enter(value);
    }
    for (int i = 0; i < body_.size(); ++i)
      if (in_loop(i)) inner.copy(i);
    std::vector<Value> outputs;
    for (const int k : kept_carries_) outputs.push_back(inner[body_.outputs()[k]]);
    for (const Value& value : leaving_) outputs.push_back(inner[value]);
    loop.set_origin("");
    loop.set_outputs(outputs);
    rewrite_.graph().set_origin(node_.origin);
    if (outputs.empty()) return {};  // nothing is left of the loop
    return ops::add_scan(rewrite_.graph(), over, std::make_shared<const Graph>(std::move(loop)));
  }

  const Node& node_;
  const ops::Scan s_;
  Graph body_;
  Rewriter& rewrite_;
  std::vector<char> carried_, stepped_, stacked_;  // node → depends on a carry, on a slice, on either
  std::vector<std::vector<int>> users_;
  std::vector<int> as_carry_, as_output_;
  std::vector<char> adds_;  // nodes of candidates_
  std::vector<Sum> candidates_, sums_;
  std::vector<char> possible_before_, before_, sinkable_, behind_, needed_;
  bool any_behind_ = false;
  std::vector<int> kept_carries_;
  std::vector<Value> entering_, leaving_;
};

}  // namespace

// Out of scans go: what does not depend on a carry (invariants once, products of slices as one product over
// all steps), and products that only feed stacked results or sums over the steps (weight gradients: one
// product over steps and rows).
static Graph hoist(const Graph& graph, const PassContext& context) {
  bool changed = false;
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    const Node& node = graph.node(i);
    if (node.op->op_class != OpClass::loop) return false;
    const ops::Scan s = ops::scan_of(node);
    std::vector<Value> constants;
    for (size_t k = 0; k < node.operands.size(); ++k)
      if (rewrite.graph().constant_value(rewrite[node.operands[k]]))
        constants.push_back(node.body->inputs()[k]);
    Graph body = eliminate_dead(eliminate_common(straighten(*node.body, s, constants), context), context);
    Split split(node, std::move(body), rewrite, context.exact);
    if (!split.changes()) return false;
    changed = true;
    const std::vector<Value> results = split.emit();
    for (size_t r = 0; r < results.size(); ++r) rewrite.set({i, static_cast<int32_t>(r)}, results[r]);
    return true;
  });
  Graph result = rewrite.finish();
  return changed ? eliminate_common(simplify(result, context), context) : result;
}

MILLRACE_PASS(hoist){.name = "hoist",
                     .doc = "out of scans goes what does not depend on what they carry",
                     .place = 110,
                     .run = hoist};

}  // namespace millrace
