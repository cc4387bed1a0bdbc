#include "optim/token_graph.h"

#include <algorithm>

#include <millrace/operator.h>

#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "ir/values.h"
#include "ops/attention.h"
#include "passes/kept_axis.h"
#include "passes/pass.h"
#include "target/provider.h"

namespace millrace::optim {
namespace {

constexpr int kNone = -1;
constexpr double kHidden = -1e4;  // what is added to scores of hidden keys, at most

/// With attention as one operator, and masks as constants.
Graph simplified(const Graph& graph) {
  static const Target none;
  const PassContext context{none, "fp32", ref::evaluate_node};
  Graph plain = graph;
  for (int round = 0; round < 2; ++round) plain = fold_constants(simplify(plain, context), context);
  plain = passes().at("recognise-attention").run(eliminate_dead(plain, context), context);
  return eliminate_dead(eliminate_common(plain, context), context);
}

[[noreturn]] void refuse(const Node& node, const std::string& what) {
  fail<InputError>("it does not work token by token: {}{} {}", node.op->name,
                   node.origin.empty() ? "" : " (" + node.origin.str() + ")", what);
}

int followed_in(const Graph& body, size_t input, int axis);

/// kept_axis(), of composites through their bodies.
int kept_in(const Graph& graph, const Node& node, size_t operand, int axis) {
  if (node.op->op_class == OpClass::composite)
    return node.body ? followed_in(*node.body, operand, axis) : kNone;
  return kept_axis(node, types_of(graph, node.operands), static_cast<int>(operand), axis);
}

/// Where an axis of a body's input is in its first output; kNone where it cannot be told.
int followed_in(const Graph& body, size_t input, int axis) {
  std::vector<int> at(static_cast<size_t>(body.size()), kNone);
  at[static_cast<size_t>(body.inputs()[input].node)] = axis;
  for (int i = 0; i < body.size(); ++i) {
    const Node& node = body.node(i);
    // Numbers by places would be those of a text that begins at a step's first token.
    if (node.op->op_class == OpClass::generator) return kNone;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const Value operand = node.operands[k];
      const int own = at[static_cast<size_t>(operand.node)];
      if (own == kNone) continue;
      const int kept = operand.output == 0 ? kept_in(body, node, k, own) : kNone;
      int& result = at[static_cast<size_t>(i)];
      if (kept == kNone || (result != kNone && result != kept)) return kNone;
      result = kept;
    }
  }
  const Value output = body.outputs()[0];
  return output.output == 0 ? at[static_cast<size_t>(output.node)] : kNone;
}

/// Whether a mask [… length, length] hides exactly the keys behind each query, or (`causal`: these are hidden
/// already) none of the others.
bool looks_back(const Array& mask, int64_t length, bool causal) {
  const Shape& shape = mask.shape();
  const int rank = shape.rank();
  if (rank < 1) return false;
  const int64_t keys = shape[rank - 1].size(), queries = rank < 2 ? 1 : shape[rank - 2].size();
  const bool each = keys == length && queries == length;
  if (!each && (!causal || (keys != 1 && keys != length) || (queries != 1 && queries != length)))
    return false;
  const bool truth = mask.dtype().is_bool();
  for (int64_t i = 0; i < mask.count(); ++i) {
    const int64_t key = keys == 1 ? 0 : i % keys, query = queries == 1 ? length - 1 : i / keys % queries;
    const double value = mask.at(i);
    const bool seen = truth ? value != 0 : value == 0, hidden = truth ? value == 0 : value <= kHidden;
    if (key <= query && !seen) return false;
    if (key > query && !hidden && !causal) return false;
  }
  return true;
}

}  // namespace

TokenGraph::TokenGraph(const Graph& whole) : graph_(simplified(whole)) {
  const auto size = static_cast<size_t>(graph_.size());
  axis_.assign(size, kNone);
  late_.assign(size, 0);
  for (int i = 0; i < graph_.size(); ++i) {
    const Node& node = graph_.node(i);
    known_without_.push_back(node.op->op_class != OpClass::input &&
                             std::all_of(node.operands.begin(), node.operands.end(),
                                         [&](Value operand) { return is_known(operand); }));
  }
  const Value tokens = graph_.inputs()[0], logits = graph_.outputs()[0];
  length_ = graph_.type(tokens).shape[1].size();
  axis_[static_cast<size_t>(tokens.node)] = 1;
  for (int i = 0; i < graph_.size(); ++i) follow(i);
  if (attention_.empty())
    fail<InputError>(
        "there is no causal attention in it that is recognised, so that there is nothing that a cache would "
        "keep");
  const Shape& shape = graph_.type(logits).shape;
  if (shape.rank() < 2 || axis(logits) != shape.rank() - 2 ||
      shape.count() != length_ * shape[shape.rank() - 1].size())
    fail<InputError>("the model gives {}, no logits at each of {} places", graph_.type(logits).str(),
                     length_);
  find_late();
}

int64_t TokenGraph::vocabulary() const {
  const Shape& shape = graph_.type(graph_.outputs()[0]).shape;
  return shape[shape.rank() - 1].size();
}

int TokenGraph::kept(const Node& node, size_t operand, int axis) const {
  return kept_in(graph_, node, operand, axis);
}

void TokenGraph::follow(int index) {
  const Node& node = graph_.node(index);
  if (node.op->is_given()) return;
  if (ops::attention_form(node) && axis(node.operands[0]) != kNone) {
    check_attention(node);
    axis_[static_cast<size_t>(index)] = axis(node.operands[0]);
    attention_.push_back(index);
    return;
  }
  for (size_t k = 0; k < node.operands.size(); ++k) {
    const Value operand = node.operands[k];
    if (axis(operand) == kNone) continue;
    const int at = operand.output == 0 ? kept(node, k, axis(operand)) : kNone;
    int& result = axis_[static_cast<size_t>(index)];
    if (at == kNone || (result != kNone && result != at)) refuse(node, "takes several tokens at once");
    result = at;
  }
}

void TokenGraph::check_attention(const Node& node) const {
  const ops::AttentionForm form = *ops::attention_form(node);
  const size_t parts = form.packed ? 1 : 3;
  for (size_t k = 0; k < parts; ++k)
    if (form.backward || axis(node.operands[k]) != (form.packed ? 1 : 2))
      refuse(node, "attends to something else than the tokens before");
  if (!form.packed && graph_.type(node.operands[1]).shape[3] != graph_.type(node.operands[2]).shape[3])
    refuse(node, "has values of another width than keys, which a cache does not keep");
  const bool causal = node.attributes.flag("causal");
  if (node.operands.size() == parts) {
    if (!causal) refuse(node, "looks at later tokens, too");
    return;
  }
  const Value mask = node.operands[parts];
  if (!is_known(mask)) refuse(node, "has a mask that depends on more than places");
  if (!looks_back(known(mask), length_, causal))
    refuse(node, "has a mask that does not hide later tokens alone, or adds to the scores by places");
}

void TokenGraph::find_late() {
  const int last = attention_.back();
  for (int i = last + 1; i < graph_.size(); ++i)
    for (const Value& operand : graph_.node(i).operands)
      if (operand.node == last || late(operand)) late_[static_cast<size_t>(i)] = 1;
}

const Array& TokenGraph::known(Value value) const {
  if (const Array* constant = graph_.constant_value(value)) return *constant;
  if (const auto found = known_.find(value); found != known_.end()) return found->second;
  const Node& node = graph_.node(value);
  Graph part;
  std::vector<Value> operands;
  std::vector<Array> arrays;
  for (const Value& operand : node.operands) {
    arrays.push_back(known(operand));
    operands.push_back(part.input("operand", arrays.back().type()));
  }
  const Value result = part.add_copy(graph_, value.node, std::move(operands));
  part.set_outputs({{result.node, value.output}});
  return known_.emplace(value, ref::evaluate(part, arrays)[0]).first->second;
}

}  // namespace millrace::optim
