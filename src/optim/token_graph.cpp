#include "optim/token_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <millrace/operator.h>

#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "ir/values.h"
#include "ops/attention.h"
#include "ops/body.h"
#include "ops/matmul.h"
#include "passes/kept_axis.h"
#include "passes/pass.h"
#include "runtime/constant_graph.h"
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

/// The results of one node of a graph.
std::vector<Array> evaluated(const Graph& graph, int node, const std::vector<Array>& operands) {
  Graph part;
  std::vector<Value> inputs, outputs;
  for (const Array& array : operands) inputs.push_back(part.input("operand", array.type()));
  const Value first = part.add_copy(graph, node, std::move(inputs));
  for (size_t r = 0; r < graph.node(node).types.size(); ++r)
    outputs.push_back({first.node, static_cast<int32_t>(r)});
  part.set_outputs(outputs);
  return ref::evaluate(part, operands);
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

/// What a mask that broadcasts to [1, heads, length, length] adds to a score; −∞: it hides the key.
class Mask {
 public:
  Mask(const Array& mask, int64_t length) : mask_(mask) {
    const Shape& shape = mask.shape();
    const Shape whole{1, shape.rank() > 2 ? shape[shape.rank() - 3] : Dim(1), length, length};
    fits_ = shape.rank() >= 1 && shape.rank() <= 4;
    int64_t stride = 1;
    for (int d = 1; fits_ && d <= shape.rank(); ++d) {
      const int64_t size = shape[shape.rank() - d].size();
      fits_ = size == 1 || size == whole[4 - d].size();
      strides_[4 - d] = size == 1 ? 0 : stride;
      stride *= size;
    }
    heads_ = whole[1].size();
  }
  bool fits() const { return fits_; }
  int64_t heads() const { return heads_; }
  double at(int64_t head, int64_t query, int64_t key) const {
    const double value = mask_.at(head * strides_[1] + query * strides_[2] + key * strides_[3]);
    if (mask_.dtype().is_bool()) return value != 0 ? 0 : -INFINITY;
    return value <= kHidden ? -INFINITY : value;
  }

 private:
  const Array& mask_;
  bool fits_ = false;
  int64_t heads_ = 1;
  std::array<int64_t, 4> strides_{};
};

/// By distance for a head: what the last query adds, if all queries add the same but for a number each, and
/// (unless `causal`) hide later keys. nullopt: they do not.
std::optional<std::vector<double>> by_distance(const Mask& mask, int64_t head, int64_t length, bool causal) {
  std::vector<double> added;
  const double last = mask.at(head, length - 1, length - 1);
  for (int64_t d = 0; d < length; ++d) added.push_back(mask.at(head, length - 1, length - 1 - d) - last);
  for (int64_t query = 0; query < length; ++query) {
    const double own = mask.at(head, query, query);
    if (std::isinf(own)) return std::nullopt;
    for (int64_t key = 0; key < length; ++key) {
      const double value = mask.at(head, query, key);
      if (key > query) {
        if (!causal && !std::isinf(value)) return std::nullopt;
        continue;
      }
      const double expected = added[static_cast<size_t>(query - key)];
      const double rounding = 4e-7 * std::max({1.0, std::abs(own), std::abs(last)});
      if (value - own != expected && !(std::abs(value - own - expected) <= rounding)) return std::nullopt;
    }
  }
  return added;
}

}  // namespace

TokenGraph::TokenGraph(const Graph& whole, const TokenGraph* longer)
    : graph_(simplified(whole)), longer_(longer) {
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
  const int64_t places = last_alone_.empty() ? length_ : 1;
  if (shape.rank() < 2 || axis(logits) < 0 || axis(logits) > shape.rank() - 2 ||
      shape.count() != places * shape.back().size())
    fail<InputError>("the model gives {}, no logits at each of {} places or at the last one",
                     graph_.type(logits).str(), length_);
  find_late();
}

int64_t TokenGraph::vocabulary() const {
  const Shape& shape = graph_.type(graph_.outputs()[0]).shape;
  return shape.back().size();
}

bool TokenGraph::takes_last(int node) const {
  return std::find(last_alone_.begin(), last_alone_.end(), node) != last_alone_.end();
}

int TokenGraph::kept(const Node& node, size_t operand, int axis) const {
  return kept_in(graph_, node, operand, axis);
}

void TokenGraph::follow(int index) {
  const Node& node = graph_.node(index);
  if (node.op->is_given()) return;
  if (ops::attention_form(node) && axis(node.operands[0]) != kNone) {
    biases_.push_back(bias_of(node));
    axis_[static_cast<size_t>(index)] = axis(node.operands[0]);
    attention_.push_back(index);
    return;
  }
  for (size_t k = 0; k < node.operands.size(); ++k) {
    const Value operand = node.operands[k];
    if (axis(operand) == kNone) continue;
    int at = operand.output == 0 ? kept(node, k, axis(operand)) : kNone;
    if (k == 0 && at == kNone && (at = axis_of_last(index)) != kNone) last_alone_.push_back(index);
    int& result = axis_[static_cast<size_t>(index)];
    if (at == kNone || (result != kNone && result != at))
      refuse(node, ops::matmul_of(node) ? "mixes tokens, and is no part of attention in a form that is known"
                                        : "takes several tokens at once");
    result = at;
  }
}

int TokenGraph::axis_of_last(int index) const {
  const Node& node = graph_.node(index);
  const Type& from = graph_.type(node.operands[0]);
  const int axis = this->axis(node.operands[0]);
  const Type& to = node.types[0];
  Shape alone = from.shape, without;
  alone[axis] = 1;
  for (int d = 0; d < from.shape.rank(); ++d)
    if (d != axis) without.push_back(from.shape[d]);
  const bool removed = to.shape == without && axis > 0 && to.shape[axis - 1] == 1;
  if (node.types.size() != 1 || to.dtype != from.dtype || (to.shape != alone && !removed)) return kNone;
  std::vector<Array> operands = {Array(from)};
  for (int64_t i = 0; i < operands[0].count(); ++i)
    operands[0].set(i, static_cast<double>(i * 2654435761 >> 8 & 0xff));
  for (size_t k = 1; k < node.operands.size(); ++k) {
    if (!is_known(node.operands[k])) return kNone;
    operands.push_back(known(node.operands[k]));
  }
  const Array result = evaluated(graph_, index, operands)[0];
  int64_t inner = 1;
  for (int d = axis + 1; d < from.shape.rank(); ++d) inner *= from.shape[d].size();
  for (int64_t i = 0; i < result.count(); ++i) {
    const int64_t place = (i / inner * length_ + length_ - 1) * inner + i % inner;
    if (result.at(i) != operands[0].at(place)) return kNone;
  }
  return removed ? axis - 1 : axis;  // the batch of one text stands for an axis that is gone
}

Array TokenGraph::bias_of(const Node& node) {
  const ops::AttentionForm form = *ops::attention_form(node);
  const size_t parts = form.packed ? 1 : 3;
  for (size_t k = 0; k < parts; ++k)
    if (form.backward || axis(node.operands[k]) != (form.packed ? 1 : 2))
      refuse(node, "attends to something else than the tokens before");
  const bool causal = node.attributes.flag("causal");
  if (node.operands.size() == parts) {
    if (!causal) refuse(node, "looks at later tokens, too");
    return bias_of({std::vector<double>(static_cast<size_t>(length_), 0)});
  }
  const Value mask = node.operands[parts];
  if (!is_known(mask)) refuse(node, "has a mask that depends on more than places");
  auto found = by_distance_.find({mask, causal});
  if (found == by_distance_.end())
    found = by_distance_.emplace(std::pair(mask, causal), heads_of(node, known(mask))).first;
  return bias_of(found->second);
}

TokenGraph::ByDistance TokenGraph::heads_of(const Node& node, const Array& array) const {
  const Mask mask(array, length_);
  if (!mask.fits()) refuse(node, "has a mask of other texts");
  ByDistance heads;
  for (int64_t h = 0; h < mask.heads(); ++h) {
    auto added = by_distance(mask, h, length_, node.attributes.flag("causal"));
    if (!added)
      refuse(node, "has a mask that shows later tokens, or depends on more than how far back others are");
    heads.push_back(std::move(*added));
  }
  return heads;
}

Array TokenGraph::bias_of(ByDistance heads) const {
  const auto same = [&](const std::vector<double>& head) { return head == heads[0]; };
  if (std::all_of(heads.begin(), heads.end(), same)) heads.resize(1);
  size_t distances = 1;
  for (const std::vector<double>& head : heads)
    for (size_t d = distances; d < head.size(); ++d)
      if (!std::isinf(head[d])) distances = d + 1;
  const std::vector<double> zeros(static_cast<size_t>(length_), 0);
  const bool nothing = heads.size() == 1 && heads[0] == zeros;
  const bool none = longer_ ? longer_->biases_[biases_.size()].empty() : nothing;
  if (none && !nothing)
    fail<InputError>(
        "what attention adds to scores depends on how long the whole text is (texts of {} tokens, and "
        "of {}): give the length that the model was made for",
        longer_->length_, length_);
  if (none) return {};
  Array bias(f32, {static_cast<int64_t>(heads.size()), static_cast<int64_t>(distances)});
  for (size_t i = 0; i < heads.size() * distances; ++i)
    bias.set(static_cast<int64_t>(i), heads[i / distances][i % distances]);
  return bias;
}

void TokenGraph::find_late() {
  const int last = attention_.back();
  for (int i = last + 1; i < graph_.size(); ++i)
    for (const Value& operand : graph_.node(i).operands)
      if (operand.node == last || late(operand)) late_[static_cast<size_t>(i)] = 1;
  for (const int i : last_alone_)
    if (!late_[static_cast<size_t>(i)])
      refuse(graph_.node(i), "takes the last token alone, before attention");
}

const Array& TokenGraph::known(Value value) const {
  if (const Array* constant = graph_.constant_value(value)) return *constant;
  if (const auto found = known_.find(value); found != known_.end()) return found->second;
  constexpr int64_t large = 1 << 20;  // masks of long texts, between whose parts nobody looks
  if (graph_.type(value).shape.count() > large)
    return known_.emplace(value, evaluate_constant_graph(ops::part_of_body(graph_, {}, {value}))[0])
        .first->second;
  std::vector<Array> operands;
  for (const Value& operand : graph_.node(value).operands) operands.push_back(known(operand));
  return known_.emplace(value, evaluated(graph_, value.node, operands)[static_cast<size_t>(value.output)])
      .first->second;
}

}  // namespace millrace::optim
