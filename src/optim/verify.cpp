#include "optim/verify.h"

#include <algorithm>
#include <cmath>

#include <millrace/operator.h>
#include <millrace/optim.h>

#include "base/format.h"

namespace millrace::optim {
namespace {

Program on_reference(const Graph& graph, std::span<const Array> inputs, const std::string& precision) {
  Program program = Program::compile(graph, {.target = "ref", .precision = precision});
  for (size_t i = 0; i < inputs.size(); ++i) program.bind_input(static_cast<int>(i), inputs[i].clone());
  program.run();
  return program;
}

/// bf16 is judged by f32. But f16's overflows decide whether a step is skipped: they must happen there too.
std::string reference_precision(const CompileOptions& tested) {
  return tested.precision == "fp16" ? "fp16" : "fp32";
}

}  // namespace

double relative_difference(const Array& a, const Array& b) {
  double scale = 0, worst = 0;
  for (int64_t i = 0; i < b.count(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (std::isfinite(x) != std::isfinite(y)) return INFINITY;
    if (!std::isfinite(y)) continue;
    scale = std::max(scale, std::abs(y));
    worst = std::max(worst, std::abs(x - y));
  }
  return worst / (1 + scale);
}

std::string first_difference(const Graph& graph, std::span<const Array> inputs, const CompileOptions& tested,
                             double tolerance) {
  Rewriter rewrite(graph);
  rewrite.copy_inputs();
  std::vector<Value> outputs, sources;
  for (int i = 0; i < graph.size(); ++i) {
    if (!rewrite.has({i, 0})) rewrite.copy(i);
    if (graph.node(i).op->is_given()) continue;
    for (size_t r = 0; r < graph.node(i).types.size(); ++r) {
      const Value value{i, static_cast<int32_t>(r)};
      if (!graph.type(value).dtype.is_float()) continue;
      outputs.push_back(rewrite[value]);
      sources.push_back(value);
    }
  }
  rewrite.graph().set_outputs(outputs);
  const Program reference = on_reference(rewrite.graph(), inputs, reference_precision(tested));
  CompileOptions options = tested;
  options.donations.clear();
  options.inputs.clear();
  options.memory = 0;  // every value is an output here
  Program program = Program::compile(rewrite.graph(), options);
  for (size_t i = 0; i < inputs.size(); ++i) program.bind_input(static_cast<int>(i), inputs[i].clone());
  program.run();
  for (size_t i = 0; i < sources.size(); ++i) {
    const double difference =
        relative_difference(program.output(static_cast<int>(i)), reference.output(static_cast<int>(i)));
    if (difference <= tolerance) continue;
    const Node& node = graph.node(sources[i]);
    return fmt::format("{}{} ({}) differs by {:.1e}", node.op->name,
                       node.location.empty() ? "" : fmt::format(" in layer '{}'", node.location.str()),
                       graph.type(sources[i]).str(), difference);
  }
  return {};
}

std::string TrainStep::run_verified(double lr) {
  const std::vector<double> lrs = group_rates(lr);
  prepare(lrs);
  std::vector<Array> inputs;
  for (int i = 0; i < program_.input_count(); ++i) inputs.push_back(program_.input(i).clone());
  program_.run();
  ++step_;
  const Program reference = on_reference(made_.graph, inputs, reference_precision(options_.compile));
  // Where numbers are rounded at random to bf16, a last digit that differs may round the other way.
  const bool narrow = program_.precision() != "fp32" || options_.compile.precision == "bf16-pure";
  const double tolerance = narrow ? 2e-2 : 1e-3;
  const double largest_rate = *std::max_element(lrs.begin(), lrs.end());
  const int parameters = made_.first_parameter(),
            buffers = parameters + static_cast<int>(made_.parameters.size());
  int worst = -1;
  double worst_ratio = 1;
  for (int o = 0; o < program_.output_count(); ++o) {
    const auto replaced = made_.donations.find(o);
    const bool parameter =
        replaced != made_.donations.end() && replaced->second >= parameters && replaced->second < buffers;
    const double allowed = tolerance + (parameter ? 3 * largest_rate : 0),
                 ratio = relative_difference(program_.output(o), reference.output(o)) / allowed;
    if (ratio <= worst_ratio) continue;
    worst_ratio = ratio;
    worst = o;
  }
  if (worst < 0) return {};
  const std::string first = first_difference(made_.graph, inputs, options_.compile, tolerance);
  return fmt::format("'{}' differs from the reference back end's by {:.1e}; {}",
                     made_.graph.output_names()[worst],
                     relative_difference(program_.output(worst), reference.output(worst)),
                     first.empty() ? "every operation alone agrees, so a fusion or the plan is at fault "
                                     "(MILLRACE_DISABLE=fuse tells which)"
                                   : "first " + first);
}

}  // namespace millrace::optim
