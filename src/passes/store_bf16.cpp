#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <millrace/operator.h>

#include "base/contains.h"
#include "ir/values.h"
#include "ops/filled.h"
#include "ops/is.h"
#include "passes/pass.h"

namespace millrace {
namespace {

// Smaller values cost nothing; larger ones are activations and their gradients.
constexpr int64_t kLeastStoredElements = 4096;

/// Where a value's digits come from: from bf16 (f16) alone (so that rounding it again loses about as much as
/// was lost before), from f32, or it does not matter (masks, constants, one number a channel).
enum class Origin { any, narrow, wide };

/// exp(−c·v²): at most 1, and flat where v is large.
bool bell(const Graph& body, const Node& node) {
  if (!node.op->is(ScalarOp::exp)) return false;
  const Node* inner = &body.node(node.operands[0]);
  bool negative = false;
  while (inner->op->is(ScalarOp::mul) || inner->op->is(ScalarOp::neg)) {
    if (inner->op->is(ScalarOp::mul) && inner->operands[0] == inner->operands[1]) return negative;
    Value next = inner->operands[0];
    if (inner->op->is(ScalarOp::neg)) {
      negative = !negative;
    } else {
      const Array* by = ops::filled_with(body, inner->operands[1]);
      if (!by) {
        by = ops::filled_with(body, inner->operands[0]);
        next = inner->operands[1];
      }
      if (!by) return false;
      negative = negative != (by->at(0) < 0);
    }
    inner = &body.node(next);
  }
  return ops::is(*inner, "square") && negative;
}

class Storer {
 public:
  Storer(const Graph& graph, DType narrow)
      : graph_(graph), narrow_(narrow), users_(users_of(graph)), rewrite_(graph) {}

  Graph run() {
    rewrite_.go_through([&](int i) {
      const Node& node = graph_.node(i);
      if (node.op->op_class == OpClass::view && narrowed_.count(node.operands[0])) narrowed_.insert({i, 0});
      return node.op->op_class == OpClass::group && store(i);
    });
    return rewrite_.finish();
  }

 private:
  /// Whether all who read the value can read it with half the bits.
  bool all_take(Value value) const {
    if (contains(graph_.outputs(), value)) return false;
    return std::all_of(users_[value.node].begin(), users_[value.node].end(), [&](int u) {
      const Node& user = graph_.node(u);
      if (!contains(user.operands, value)) return true;
      // What a view only waits for is a sum over parts of a batch: it would be rounded once a part.
      if (user.op->op_class == OpClass::view) return user.operands[0] == value && all_take({u, 0});
      return user.op->op_class == OpClass::group && !amplified(*user.body, user, value);
    });
  }

  /// Whether the body's values that depend on `value` go through an operator that would amplify its rounding.
  static bool amplified(const Graph& body, const Node& user, Value value) {
    std::vector<char> depends(body.size(), 0);
    for (size_t k = 0; k < user.operands.size(); ++k)
      if (user.operands[k] == value) depends[body.inputs()[k].node] = 1;
    for (int i = 0; i < body.size(); ++i) {
      const Node& node = body.node(i);
      for (const Value& operand : node.operands)
        if (depends[operand.node] && body.type(operand).dtype == f32) depends[i] = 1;
      if (depends[i] && node.op->errors != ErrorGrowth::none && !bell(body, node)) return true;
    }
    return false;
  }

  /// The origin of each value of node i's body, seen from a result of `elements`.
  std::vector<Origin> origins(const Node& fused, int64_t elements) const {
    const Graph& body = *fused.body;
    std::vector<Origin> origin(body.size(), Origin::wide);
    for (size_t k = 0; k < fused.operands.size(); ++k)
      if (narrowed_.count(fused.operands[k])) origin[body.inputs()[k].node] = Origin::narrow;
    for (int i = 0; i < body.size(); ++i) {
      const Node& node = body.node(i);
      const Type& type = node.types[0];
      if (type.dtype == narrow_) {
        origin[i] = Origin::narrow;
      } else if (!type.dtype.is_float() || type.shape.count() * 4 <= elements) {
        origin[i] = Origin::any;
      } else if (arithmetic_of(*node.op) == Arithmetic::follows || bell(body, node)) {
        origin[i] = Origin::any;
        for (const Value& operand : node.operands) origin[i] = std::max(origin[i], origin[operand.node]);
      }
    }
    return origin;
  }

  bool stores_narrow(int i, size_t result) const {
    const Node& node = graph_.node(i);
    const Type& type = node.types[result];
    if (type.dtype != f32 || type.shape.count() < kLeastStoredElements) return false;
    const Value value{i, static_cast<int32_t>(result)};
    const Value inside = node.body->outputs()[result];
    if (node.body->node(inside).op->op_class == OpClass::reduction) return false;
    return origins(node, type.shape.count())[inside.node] == Origin::narrow && all_take(value);
  }

  /// What a group of one result only widens: a narrow value of the new graph.
  std::optional<Value> only_widens(const Node& node) const {
    if (node.types.size() != 1) return std::nullopt;
    const Node& last = node.body->node(node.body->outputs()[0]);
    if (!last.op->converts || last.types[0].dtype != f32) return std::nullopt;
    for (size_t k = 0; k < node.operands.size(); ++k)
      if (last.operands[0] == node.body->inputs()[k] && node.body->type(last.operands[0]).dtype == narrow_)
        return rewrite_[node.operands[k]];
    return std::nullopt;
  }

  /// A group that reads or leaves something narrow, instead of it. False where it does neither.
  bool store(int i) {
    const Node& node = graph_.node(i);
    if (const std::optional<Value> same = only_widens(node); same && stores_narrow(i, 0)) {
      rewrite_.set({i, 0}, *same);  // rounding it again would be a copy
      narrowed_.insert({i, 0});
      return true;
    }
    std::vector<char> narrow(node.types.size());
    for (size_t r = 0; r < narrow.size(); ++r) narrow[r] = stores_narrow(i, r) ? 1 : 0;
    const bool reads_narrow = std::any_of(node.operands.begin(), node.operands.end(),
                                          [&](const Value& v) { return narrowed_.count(v) > 0; });
    if (!reads_narrow && !contains(narrow, 1)) return false;

    auto body = std::make_shared<Graph>();
    body->set_origin(node.origin);
    std::vector<Value> inside;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const Value old_input = node.body->inputs()[k];
      const bool changed = narrowed_.count(node.operands[k]) > 0;
      Type type = node.body->type(old_input);
      if (changed) type.dtype = narrow_;
      const Value input = body->input(node.body->input_names()[k], type);
      inside.push_back(changed ? body->add("cast", {input}, {{"dtype", f32}}) : input);
    }
    std::vector<Value> computed = inline_graph(*body, *node.body, inside);
    std::vector<Value> outputs;
    std::vector<size_t> position(computed.size());
    std::map<Value, size_t> rounded;
    for (size_t r = 0; r < computed.size(); ++r) {
      const Node& last = body->node(computed[r]);
      position[r] = outputs.size();
      // A result and its rounded copy become one.
      if (narrow[r] || (last.op->converts && last.types[0].dtype == narrow_)) {
        const Value wide = narrow[r] ? computed[r] : last.operands[0];
        position[r] = rounded.try_emplace(wide, outputs.size()).first->second;
        if (position[r] < outputs.size()) continue;
      }
      outputs.push_back(narrow[r] ? body->add("cast", {computed[r]}, {{"dtype", narrow_}}) : computed[r]);
    }
    body->set_outputs(outputs);
    rewrite_.graph().set_origin(node.origin);
    const Value added =
        rewrite_.graph().add_with_body(*node.op, rewrite_.mapped(node.operands), node.attributes, body);
    for (size_t r = 0; r < computed.size(); ++r) {
      const Value old_value{i, static_cast<int32_t>(r)};
      rewrite_.set(old_value, {added.node, static_cast<int32_t>(position[r])});
      if (narrow[r]) narrowed_.insert(old_value);
    }
    return true;
  }

  const Graph& graph_;
  const DType narrow_;
  std::vector<std::vector<int>> users_;
  Rewriter rewrite_;
  std::set<Value> narrowed_;  // values of the old graph that are bf16 in the new one
};

}  // namespace

// In mixed precision: what one kernel leaves for others in f32 although it was computed from bf16 is stored
// as bf16, with half the memory and traffic. Arithmetic stays f32. These are the types that promotion gives
// in frameworks whose activations are bf16: a residual sum of convolutions is rounded, one that began with
// f32 (an embedding) is not.
static Graph store_in_bf16(const Graph& graph, const PassContext& context) {
  if (context.precision == "bf16") return Storer(graph, bf16).run();
  if (context.precision == "fp16") return Storer(graph, f16).run();
  return graph;
}

MILLRACE_PASS(store_bf16){.name = "store-bf16",
                          .doc = "bf16: what one kernel leaves for others is stored as bf16",
                          .place = 230,
                          .run = store_in_bf16};

}  // namespace millrace
