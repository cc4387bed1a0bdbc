#include "autodiff/scan_gradient.h"

#include <algorithm>
#include <map>

#include <millrace/operator.h>
#include <millrace/tensor.h>

#include "autodiff/gradient.h"
#include "base/format.h"
#include "ir/values.h"
#include "ops/build.h"
#include "ops/filled.h"
#include "ops/scan.h"

namespace millrace {
namespace {

/// Zero everywhere, as gradients() gives it where nothing flows.
bool is_zero(const Graph& graph, Value value) { return ops::is_filled_with(graph, value, 0); }

/// The body and, behind its nodes, its gradient.
struct Joint {
  Graph graph;
  int forward = 0;                     // nodes of the body
  std::vector<Value> carry_seeds;      // for each carry; invalid for integers
  std::vector<Value> output_seeds;     // for each output; invalid where no gradient arrives
  std::vector<Value> input_gradients;  // for each body input; invalid for integers
};

Joint differentiate_body(const Graph& body, const ops::Scan& s, std::span<const Value> result_gradients) {
  Joint joint{body, body.size(), {}, {}, {}};
  Graph& graph = joint.graph;
  std::vector<Value> outputs, seeds;
  for (int k = 0; k < s.carries + s.outputs; ++k) {
    const Value output = graph.outputs()[k];
    const bool carry = k < s.carries;
    Value seed;
    if (graph.type(output).dtype.is_float() && (carry || result_gradients[k].valid())) {
      seed = graph.input(fmt::format("d{}", k), graph.type(output));
      outputs.push_back(output);
      seeds.push_back(seed);
    }
    (carry ? joint.carry_seeds : joint.output_seeds).push_back(seed);
  }
  joint.input_gradients = partial_gradients(graph, outputs, seeds, body.inputs());
  return joint;
}

/// Builds the body of the backward scan from a joint graph. Of a while_loop it passes on what it carries for
/// the steps that were not run.
class BackwardBody {
 public:
  BackwardBody(const Joint& joint, const ops::Scan& scan)
      : joint_(joint), scan_(scan), needed_(joint.graph.size(), 0), position_(joint.graph.size(), -1) {
    for (int k = 0; k < static_cast<int>(body_inputs()); ++k) position_[joint.graph.inputs()[k].node] = k;
    for (size_t k = 0; k < joint.input_gradients.size(); ++k) {
      const Value gradient = joint.input_gradients[k];
      if (!gradient.valid()) continue;
      const bool zero = is_zero(joint.graph, gradient);
      if (is_carry(k) || !zero) need(gradient);
    }
    if (scan.conditional) need(ran());
    for (int i = joint.graph.size() - 1; i >= 0; --i)
      if (needed_[i] && computed(i))
        for (const Value& operand : joint.graph.node(i).operands) need(operand);
  }

  /// Values of the forward body that each step keeps for the backward scan: everything that the gradient
  /// reads, but slices and invariants, which are there again, and what is free to compute again.
  const std::vector<Value>& saved() const { return saved_; }

  bool is_carry(size_t input) const { return static_cast<int>(input) < scan_.carries; }
  bool is_sequence(size_t input) const {
    return !is_carry(input) && static_cast<int>(input) < scan_.carries + scan_.sequences;
  }
  /// Whether a gradient flows to an invariant, which then has a sum that is carried.
  bool summed(size_t input) const {
    const Value gradient = joint_.input_gradients[input];
    return !is_carry(input) && !is_sequence(input) && gradient.valid() && !is_zero(joint_.graph, gradient);
  }
  bool reads(size_t input) const { return needed_[joint_.graph.inputs()[input].node] != 0; }

  /// Inputs in the order carries (gradients, sums), sequences (slices, saved, seeds), invariants.
  Graph build() {
    const Graph& from = joint_.graph;
    const size_t inputs = body_inputs();
    const auto input = [&](Value value) {
      map_[value] = to_.input(fmt::format("x{}", to_.inputs().size()), from.type(value));
    };
    for (const Value& seed : joint_.carry_seeds)
      if (seed.valid()) input(seed);
    std::vector<Value> sums(inputs);
    for (size_t k = 0; k < inputs; ++k)
      if (summed(k)) sums[k] = to_.input(fmt::format("sum{}", k), from.type(from.inputs()[k]));
    for (size_t k = 0; k < inputs; ++k)
      if (is_sequence(k) && reads(k)) input(from.inputs()[k]);
    for (const Value& value : saved_) input(value);
    for (const Value& seed : joint_.output_seeds)
      if (seed.valid()) input(seed);
    for (size_t k = 0; k < inputs; ++k)
      if (!is_carry(k) && !is_sequence(k) && reads(k)) input(from.inputs()[k]);
    for (int i = 0; i < from.size(); ++i)
      if (needed_[i] && computed(i)) copy(i);
    set_outputs(sums);
    return std::move(to_);
  }

 private:
  size_t body_inputs() const { return joint_.input_gradients.size(); }
  /// Of a while_loop, whose stacks are zero, or false, for steps that were not run: whether a step was, which
  /// the condition says that it begins with.
  Value ran() const { return joint_.graph.inputs()[0]; }

  /// Free to compute again: where it comes from is kept instead.
  static bool is_free(const Node& node) {
    return node.op->op_class == OpClass::constant || node.op->op_class == OpClass::view ||
           node.op->repeat == Repeat::free;
  }
  bool computed(int i) const {
    return !joint_.graph.is_input({i, 0}) && (i >= joint_.forward || is_free(joint_.graph.node(i)));
  }

  void need(Value value) {
    const Node& node = joint_.graph.node(value);
    needed_[value.node] = 1;
    if (value.node >= joint_.forward || is_free(node)) return;
    if (position_[value.node] >= scan_.carries) return;  // a slice or an invariant
    if (std::find(saved_.begin(), saved_.end(), value) == saved_.end()) saved_.push_back(value);
  }

  void copy(int i) {
    const Node& node = joint_.graph.node(i);
    std::vector<Value> operands;
    for (const Value& operand : node.operands) operands.push_back(map_.at(operand));
    to_.set_location(node.location);
    map_results(map_, joint_.graph, i, to_.add_copy(joint_.graph, i, std::move(operands)));
  }

  void set_outputs(const std::vector<Value>& sums) {
    ops::Build b(to_);
    std::vector<Value> outputs;
    const auto next = [&](Value value, Value before) {
      outputs.push_back(scan_.conditional ? b.select(map_.at(ran()), value, before) : value);
    };
    for (int k = 0; k < scan_.carries; ++k)
      if (const Value seed = joint_.carry_seeds[k]; seed.valid())
        next(map_.at(joint_.input_gradients[k]), map_.at(seed));
    for (size_t k = 0; k < sums.size(); ++k)
      if (sums[k].valid()) next(b.add(sums[k], map_.at(joint_.input_gradients[k])), sums[k]);
    for (size_t k = 0; k < sums.size(); ++k)
      if (is_sequence(k) && joint_.input_gradients[k].valid() &&
          !is_zero(joint_.graph, joint_.input_gradients[k]))
        outputs.push_back(map_.at(joint_.input_gradients[k]));
    to_.set_location("");
    to_.set_outputs(std::move(outputs));
  }

  const Joint& joint_;
  const ops::Scan& scan_;
  std::vector<char> needed_;
  std::vector<int> position_;  // node → body input
  std::vector<Value> saved_;
  std::map<Value, Value> map_;
  Graph to_;
};

/// The stacks of `saved` from a scan like `node` that gives them too.
std::vector<Value> save(Graph& graph, const Node& node, const ops::Scan& s, std::span<const Value> operands,
                        const std::vector<Value>& saved) {
  if (saved.empty()) return {};
  auto body = std::make_shared<Graph>(*node.body);
  std::vector<Value> outputs = body->outputs();
  outputs.insert(outputs.end(), saved.begin(), saved.end());
  body->set_outputs(outputs);
  const Value added =
      graph.add_with_body(*node.op, {operands.begin(), operands.end()}, node.attributes, std::move(body));
  std::vector<Value> stacks;
  for (size_t k = 0; k < saved.size(); ++k)
    stacks.push_back({added.node, s.carries + s.outputs + static_cast<int32_t>(k)});
  return stacks;
}

}  // namespace

std::vector<Value> scan_gradient(Graph& graph, const Node& node, std::span<const Value> operands,
                                 std::span<const Value> result_gradients) {
  const ops::Scan s = ops::scan_of(node);
  if (s.conditional && s.length == Dim(no_limit))
    fail<TypeError>("a while_loop has a gradient where it has a limit of its steps, and this one has none{}",
                    node.location.empty() ? "" : fmt::format(" (in layer '{}')", node.location.str()));
  const Joint joint = differentiate_body(*node.body, s, result_gradients);
  BackwardBody backward(joint, s);
  ops::Build b(graph);
  ops::ScanOperands over;
  over.length = s.length;
  over.reverse = !s.reverse;
  for (int k = 0; k < s.carries; ++k)
    if (joint.carry_seeds[k].valid())
      over.carries.push_back(result_gradients[k].valid() ? result_gradients[k] : b.zeros(operands[k]));
  for (size_t k = 0; k < operands.size(); ++k)
    if (backward.summed(k)) over.carries.push_back(b.zeros(operands[k]));
  for (size_t k = 0; k < operands.size(); ++k)
    if (backward.is_sequence(k) && backward.reads(k)) over.sequences.push_back(operands[k]);
  for (const Value& stack : save(graph, node, s, operands, backward.saved())) over.sequences.push_back(stack);
  for (int k = 0; k < s.outputs; ++k)
    if (joint.output_seeds[k].valid()) over.sequences.push_back(result_gradients[s.carries + k]);
  for (size_t k = 0; k < operands.size(); ++k)
    if (!backward.is_carry(k) && !backward.is_sequence(k) && backward.reads(k))
      over.invariants.push_back(operands[k]);
  auto body = std::make_shared<const Graph>(backward.build());
  std::vector<Value> parts(operands.size());
  if (body->outputs().empty()) return parts;
  Value next = ops::add_scan(graph, over, std::move(body));
  for (size_t k = 0; k < operands.size(); ++k)
    if (backward.is_carry(k) && joint.carry_seeds[k].valid()) {
      parts[k] = next;
      ++next.output;
    }
  for (size_t k = 0; k < operands.size(); ++k)
    if (backward.summed(k)) {
      parts[k] = next;
      ++next.output;
    }
  for (size_t k = 0; k < operands.size(); ++k) {
    const Value gradient = joint.input_gradients[k];
    if (!backward.is_sequence(k) || !gradient.valid() || is_zero(joint.graph, gradient)) continue;
    parts[k] = next;
    ++next.output;
  }
  return parts;
}

}  // namespace millrace
