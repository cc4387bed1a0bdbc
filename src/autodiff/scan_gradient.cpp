#include <algorithm>
#include <map>

#include <millrace/operator.h>

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

/// The backward scan: its body, from a joint graph, and what that is given. Of a while_loop it passes on what
/// it carries for the steps that were not run.
class BackwardScan {
 public:
  BackwardScan(const Node& node, const ops::Scan& scan, std::span<const Value> operands,
               std::span<const Value> result_gradients)
      : node_(node),
        scan_(scan),
        operands_(operands),
        result_gradients_(result_gradients),
        joint_(differentiate_body(*node.body, scan, result_gradients)),
        needed_(joint_.graph.size(), 0),
        position_(joint_.graph.size(), -1) {
    for (size_t k = 0; k < operands.size(); ++k) position_[body_input(k).node] = static_cast<int>(k);
    for (size_t k = 0; k < operands.size(); ++k)
      if (flows(k)) need(joint_.input_gradients[k]);
    if (scan.conditional) need(ran());
    for (int i = joint_.graph.size() - 1; i >= 0; --i)
      if (needed_[i] && computed(i))
        for (const Value& operand : joint_.graph.node(i).operands) need(operand);
  }

  /// Appends it; the gradients of the operands.
  std::vector<Value> append_to(Graph& graph) {
    ops::Build b(graph);
    ops::ScanOperands over;
    over.length = scan_.length;
    over.reverse = !scan_.reverse;
    const size_t count = operands_.size();
    for (int k = 0; k < scan_.carries; ++k)
      if (joint_.carry_seeds[k].valid())
        input(joint_.carry_seeds[k], over.carries,
              result_gradients_[k].valid() ? result_gradients_[k] : b.zeros(operands_[k]));
    std::vector<Value> sums(count);
    for (size_t k = 0; k < count; ++k)
      if (!is_carry(k) && !is_sequence(k) && flows(k)) {
        sums[k] = to_.input(fmt::format("sum{}", k), joint_.graph.type(body_input(k)));
        over.carries.push_back(b.zeros(operands_[k]));
      }
    for (size_t k = 0; k < count; ++k)
      if (is_sequence(k) && reads(k)) input(body_input(k), over.sequences, operands_[k]);
    const std::vector<Value> stacks = save(graph, node_, scan_, operands_, saved_);
    for (size_t k = 0; k < saved_.size(); ++k) input(saved_[k], over.sequences, stacks[k]);
    for (int k = 0; k < scan_.outputs; ++k)
      if (joint_.output_seeds[k].valid())
        input(joint_.output_seeds[k], over.sequences, result_gradients_[scan_.carries + k]);
    for (size_t k = 0; k < count; ++k)
      if (!is_carry(k) && !is_sequence(k) && reads(k)) input(body_input(k), over.invariants, operands_[k]);
    for (int i = 0; i < joint_.graph.size(); ++i)
      if (needed_[i] && computed(i)) copy(i);
    const std::vector<size_t> of = set_outputs(sums);
    std::vector<Value> parts(count);
    if (of.empty()) return parts;
    Value next = ops::add_scan(graph, over, std::make_shared<const Graph>(std::move(to_)));
    for (const size_t k : of) {
      parts[k] = next;
      ++next.output;
    }
    return parts;
  }

 private:
  Value body_input(size_t k) const { return joint_.graph.inputs()[k]; }
  bool is_carry(size_t k) const { return static_cast<int>(k) < scan_.carries; }
  bool is_sequence(size_t k) const {
    return !is_carry(k) && static_cast<int>(k) < scan_.carries + scan_.sequences;
  }
  bool reads(size_t k) const { return needed_[body_input(k).node] != 0; }
  /// Whether the body gives a gradient of this input. An invariant's is a sum, which is carried.
  bool flows(size_t k) const {
    const Value gradient = joint_.input_gradients[k];
    return gradient.valid() && (is_carry(k) || !is_zero(joint_.graph, gradient));
  }
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

  /// An input of the body that stands for a value, and what the loop is given for it.
  void input(Value value, std::vector<Value>& list, Value given) {
    map_[value] = to_.input(fmt::format("x{}", to_.inputs().size()), joint_.graph.type(value));
    list.push_back(given);
  }

  void copy(int i) {
    const Node& node = joint_.graph.node(i);
    std::vector<Value> operands;
    for (const Value& operand : node.operands) operands.push_back(map_.at(operand));
    to_.set_origin(node.origin);
    map_results(map_, joint_.graph, i, to_.add_copy(joint_.graph, i, std::move(operands)));
  }

  /// The operands whose gradients they are.
  std::vector<size_t> set_outputs(const std::vector<Value>& sums) {
    ops::Build b(to_);
    std::vector<Value> outputs;
    std::vector<size_t> of;
    const auto gradient = [&](size_t k) { return map_.at(joint_.input_gradients[k]); };
    const auto next = [&](size_t k, Value value, Value before) {
      outputs.push_back(scan_.conditional ? b.select(map_.at(ran()), value, before) : value);
      of.push_back(k);
    };
    for (size_t k = 0; k < joint_.carry_seeds.size(); ++k)
      if (const Value seed = joint_.carry_seeds[k]; seed.valid()) next(k, gradient(k), map_.at(seed));
    for (size_t k = 0; k < sums.size(); ++k)
      if (sums[k].valid()) next(k, b.add(sums[k], gradient(k)), sums[k]);
    for (size_t k = 0; k < sums.size(); ++k)
      if (is_sequence(k) && flows(k)) {
        outputs.push_back(gradient(k));
        of.push_back(k);
      }
    to_.set_origin("");
    to_.set_outputs(std::move(outputs));
    return of;
  }

  const Node& node_;
  const ops::Scan& scan_;
  const std::span<const Value> operands_, result_gradients_;
  const Joint joint_;
  std::vector<char> needed_;
  std::vector<int> position_;  // node → body input
  /// Values of the forward body that each step keeps for the backward scan: everything that the gradient
  /// reads, but slices and invariants, which are there again, and what is free to compute again.
  std::vector<Value> saved_;
  std::map<Value, Value> map_;
  Graph to_;
};

}  // namespace

std::vector<Value> scan_gradient(Graph& graph, const Node& node, std::span<const Value> operands,
                                 std::span<const Value> result_gradients) {
  const ops::Scan s = ops::scan_of(node);
  if (s.conditional && s.length == Dim(no_limit))
    fail<TypeError>("a while_loop has a gradient where it has a limit of its steps, and this one has none{}",
                    node.origin.empty() ? "" : fmt::format(" (in layer '{}')", node.origin.str()));
  return BackwardScan(node, s, operands, result_gradients).append_to(graph);
}

}  // namespace millrace
