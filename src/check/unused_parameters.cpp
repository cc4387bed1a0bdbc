// Every weight that is to be trained must get a gradient, and the optimiser must move it.
#include <algorithm>
#include <set>

#include <millrace/operator.h>

#include "base/format.h"
#include "base/words.h"
#include "check/check.h"
#include "check/context.h"
#include "optim/model_scope.h"

namespace millrace::check {
namespace {

/// Constants that a product or convolution takes beside data: a weight that nobody registered looks so.
/// `layers`: only within those, not where an input makes numbers of its data.
std::vector<std::string> weights_that_are_constants(const Recorded& recorded, int64_t rows, bool layers) {
  const Graph& graph = recorded.graph;
  const auto data =
      recorded.reached_from(std::span(graph.inputs()).first(static_cast<size_t>(recorded.inputs)));
  // Views and casts of constants are constants.
  std::vector<char> constant(static_cast<size_t>(graph.size()), 0);
  std::set<std::string> found;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.op->op_class == OpClass::constant) {
      constant[static_cast<size_t>(i)] = node.types[0].shape.rank() >= 2 && node.types[0].dtype.is_float();
      continue;
    }
    const bool moves =
        node.op->op_class == OpClass::movement || node.op->op_class == OpClass::view || node.op->converts;
    if (moves && node.operands.size() == 1)
      constant[static_cast<size_t>(i)] = constant[static_cast<size_t>(node.operands[0].node)];
    if (layers && node.origin.call) continue;
    if (!node.op->flops || !std::any_of(node.operands.begin(), node.operands.end(),
                                        [&](const Value& v) { return data[static_cast<size_t>(v.node)]; }))
      continue;
    for (const Value& operand : node.operands) {
      const Shape& shape = graph.type(operand).shape;
      if (constant[static_cast<size_t>(operand.node)] && shape[0].size() != rows)
        found.insert(node.origin.layer.empty() ? std::string(node.op->name) : node.origin.layer.str());
    }
  }
  return {found.begin(), found.end()};
}

/// Trainable parameters that a step of the optimiser leaves as they were, though they have a gradient.
std::vector<std::string> unmoved(Context& context, const std::set<std::string>& without_gradient) {
  (void)context.step();
  const std::vector<Array> before = context.weights();
  const auto parameters = context.model()->parameters();
  context.train(context.batch(), context.subject().lr);
  std::vector<std::string> names;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].trainable && !without_gradient.contains(parameters[i].name) &&
        optim::value_of(parameters[i]).identical(before[i]))
      names.push_back(parameters[i].name);
  context.reset();
  return names;
}

Finding run_unused_parameters(Context& context) {
  const Recorded& recorded = context.recorded();
  const std::vector<char> needed = recorded.needed();
  std::vector<std::string> unused, flat;
  std::set<std::string> without;
  size_t trainable = 0;
  for (size_t i = 0; i < recorded.parameters.size(); ++i) {
    if (!recorded.trainable[i]) continue;
    ++trainable;
    if (needed[static_cast<size_t>(recorded.parameter(i).node)]) continue;
    unused.push_back(recorded.parameters[i]);
    without.insert(recorded.parameters[i]);
  }
  if (trainable == 0)
    return failed("the model has no parameter that is trained", "thaw some, or register them");
  for (const Signal& signal : context.signals()) {
    if (!signal.parameter || without.contains(signal.name)) continue;
    const auto g = signal.gradient.as<float>();
    if (std::any_of(g.begin(), g.end(), [](float v) { return v != 0; })) continue;
    flat.push_back(signal.name);
    without.insert(signal.name);
  }
  const std::vector<std::string> still = unmoved(context, without),
                                 constants = weights_that_are_constants(recorded, context.rows(),
                                                                        context.task() != nullptr);
  const Finding finding = [&] {
    if (!unused.empty())
      return failed(fmt::format("the loss does not depend on {}", few_names(unused)),
                    "use them in forward(), or remove them; a module that is made but never called is the "
                    "usual reason");
    if (!flat.empty() && flat.size() == trainable)
      return failed("no parameter has a gradient: all are 0",
                    "look for stop_gradient, a rounding or argmax on the way from the loss to the weights");
    if (!still.empty())
      return failed(
          fmt::format("a step leaves {} as they were, though they have gradients", few_names(still)),
          "give them to the optimiser: a group with lr_scale = 0, or a learning rate of 0, keeps them");
    if (!constants.empty())
      return failed(fmt::format("{} multiplies by numbers that are no parameters", few_names(constants)),
                    "register weights with parameter() or child(): others are constants of the graph, which "
                    "no step changes and no checkpoint holds");
    if (!flat.empty())
      return warned(fmt::format("the gradient of {} is 0 in the first batch", few_names(flat)),
                    "this is right where what they multiply is 0 now (a layer behind that begins at zero, a "
                    "unit that is off); else look for stop_gradient, rounding or argmax");
    return passed(fmt::format("all {} parameters have a gradient, and a step moves them", trainable));
  }();
  return with_numbers(finding, {{"unused", unused.size()},
                                {"without_gradient", flat.size()},
                                {"not_moved", still.size()},
                                {"constants", constants.size()}});
}

}  // namespace

MILLRACE_CHECK_KIND(unused_parameters){
    .name = "unused-parameters",
    .doc = "parameters without a gradient, not in the optimiser, or not registered at all",
    .matters = "what no step moves stays as it was drawn: the model is smaller than it looks",
    .place = 280,
    .run = run_unused_parameters,
};

}  // namespace millrace::check
