// Probabilities handed to a loss that makes probabilities itself.
#include <algorithm>
#include <cmath>

#include <millrace/operator.h>
#include <millrace/rewrite.h>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "check/rows.h"

namespace millrace::check {
namespace {

bool makes_probabilities(const Operator& op) { return op.lowest >= 0 && op.highest <= 1; }

/// The node that a value is of, behind views and casts.
const Node& origin(const Graph& graph, Value value) {
  for (;;) {
    const Node& node = graph.node(value);
    const bool passes =
        (node.op->op_class == OpClass::view || node.op->op_class == OpClass::movement || node.op->converts) &&
        node.operands.size() == 1;
    if (!passes) return node;
    value = node.operands[0];
  }
}

/// What the loss makes of the model's outputs; null where it takes them as they are.
const Operator* logits_loss(const Recorded& recorded) {
  const auto needed = recorded.needed();
  const Operator* found = nullptr;
  // The last one: those before are the model's own (attention). A model may end in a softmax.
  for (int i = 0; i < recorded.graph.size(); ++i)
    if (const Operator& op = *recorded.graph.node(i).op;
        needed[static_cast<size_t>(i)] && op.logits != Logits::none && !makes_probabilities(op))
      found = &op;
  return found;
}

/// What takes for logits what others made, and what made it; "" where `made` says that of none.
template <typename Made>
std::string logits_made(const Recorded& recorded, const Made& made) {
  const Graph& graph = recorded.graph;
  const auto needed = recorded.needed();
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.op->logits == Logits::none || !needed[static_cast<size_t>(i)]) continue;
    const Node& from = origin(graph, node.operands[0]);
    if (made(*node.op, *from.op))
      return fmt::format("{} takes what {}{} made", node.op->name, from.op->name,
                         from.origin.empty() ? "" : " in " + from.origin.place());
  }
  return {};
}

/// With weights all over the place, are outputs in 0 … 1 (and do they sum to 1)?
struct OutputRange {
  bool probabilities = false, sum_to_one = false;
  double least = 0, most = 0;
};
OutputRange range_of(const Array& output) {
  OutputRange range;
  if (output.count() < 8 || output.shape().rank() < 1) return range;
  const auto x = output.as<float>();
  const auto [least, most] = std::minmax_element(x.begin(), x.end());
  range.least = *least;
  range.most = *most;
  range.probabilities = *least >= 0 && *most <= 1 && *most - *least > 1e-3;
  const auto width = static_cast<size_t>(output.shape().back().size());
  range.sum_to_one = width > 1;
  for (size_t r = 0; r + width <= x.size() && range.sum_to_one; r += width) {
    double sum = 0;
    for (size_t i = 0; i < width; ++i) sum += x[r + i];
    range.sum_to_one = std::abs(sum - 1) < 1e-3;
  }
  return range;
}

Finding run_probabilities(Context& context) {
  const Recorded& recorded = context.recorded();
  const Operator* wants = logits_loss(recorded);
  if (!wants) return not_for("the loss makes no probabilities");
  constexpr const char* advice =
      "take the softmax or sigmoid out of the model: the loss has its own, and a second one leaves gradients "
      "that are small and a loss that cannot come near 0";
  if (const std::string twice = logits_made(
          recorded, [](const Operator&, const Operator& from) { return makes_probabilities(from); });
      !twice.empty())
    return failed(twice, advice);
  if (const std::string cut_off = logits_made(recorded,
                                              [](const Operator& to, const Operator& from) {
                                                return !makes_probabilities(to) && from.lowest >= 0;
                                              });
      !cut_off.empty())
    return warned(cut_off + ", which is never below 0",
                  "logits are of any sign: take the activation behind the last layer out, which leaves "
                  "classes no way to be unlikely, and no gradient where all are at 0");
  widen_weights(context);
  const std::vector<Array> outputs = context.outputs(context.given(context.batch()));
  double least = INFINITY, most = -INFINITY;
  for (const Array& output : outputs) {
    const OutputRange range = range_of(output);
    least = std::min(least, range.least);
    most = std::max(most, range.most);
    if (!range.probabilities || !(wants->logits == Logits::each || range.sum_to_one)) continue;
    return with_numbers(
        failed(fmt::format("whatever the weights, outputs are between {} and {}{}, and {} takes them for "
                           "logits",
                           short_number(range.least), short_number(range.most),
                           range.sum_to_one ? " and sum to 1" : "", wants->name),
               advice),
        {{"least", range.least}, {"most", range.most}});
  }
  return with_numbers(passed(fmt::format("with weights drawn wide, outputs reach from {} to {}: logits",
                                         short_number(least), short_number(most))),
                      {{"least", least}, {"most", most}});
}

}  // namespace

MILLRACE_CHECK_KIND(probabilities){
    .name = "probabilities",
    .doc = "probabilities fed into a loss that wants logits (softmax or sigmoid twice)",
    .matters =
        "softmax of a softmax hardly tells classes apart: training runs, slowly, and ends at a loss that it "
        "cannot go below",
    .place = 240,
    .run = run_probabilities,
};

}  // namespace millrace::check
