#include "optim/verify.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <millrace/operator.h>

#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "optim/rounding.h"
#include "passes/pass.h"
#include "target/device.h"

namespace millrace::optim {
namespace {

/// bf16 is judged by f32. But f16's overflows decide whether a step is skipped: they must happen there too.
std::string reference_precision(const CompileOptions& tested) {
  return tested.precision == "fp16" ? "fp16" : "fp32";
}

/// What the reference back end makes of `graph`. No pass has a hand in it but those that rounding to f16
/// needs: what passes do is judged too.
std::vector<Array> on_reference(const Graph& graph, std::span<const Array> inputs,
                                const std::string& precision) {
  if (precision == "fp32") return ref::evaluate(graph, inputs);
  const PassContext context{device_named("ref").target(), precision, ref::evaluate_node};
  Graph rounded = graph;
  for (const std::string_view name : {"inline", "round-f16"})
    rounded = run_pass(passes().at(name), std::move(rounded), context);
  return ref::evaluate(rounded, inputs);
}

/// Winograd's convolutions are off most: by what tests/backend/cpu/winograd_test.cpp holds them to. In 16
/// bits it is the operands of products that are off, and what is stored between them.
Rounding rounding_of(const Program& program) {
  if (program.precision() == "bf16") return {8e-3, 2e-3, 4e-3};
  if (program.precision() == "fp16") return {5e-4, 5e-4, 1e-3};
  return {1.5e-5, 1e-5, 1e-6};
}

/// What is allowed in any case, as a part of what is compared.
double least_allowed(const Program& program) {
  return program.precision() == "bf16" ? 1e-2 : program.precision() == "fp16" ? 4e-3 : 1e-3;
}

/// The distance of one vector from another, or from 0.
struct Distance {
  double norm = 0, largest = 0;
  double along = 0;  // how much longer or shorter it is in the other's direction, as a part

  void raise_to(const Distance& other) {
    norm = std::max(norm, other.norm);
    largest = std::max(largest, other.largest);
    along = std::max(along, other.along);
  }
};

Distance size_of(std::span<const double> v) {
  double squares = 0, largest = 0;
  for (const double x : v)
    if (std::isfinite(x)) {
      squares += x * x;
      largest = std::max(largest, std::abs(x));
    }
  return {std::sqrt(squares), largest, 0};
}

Distance distance(std::span<const double> from, std::span<const double> to) {
  double squares = 0, largest = 0, along = 0, length = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    if (std::isfinite(from[i]) != std::isfinite(to[i])) return {INFINITY, INFINITY, INFINITY};
    if (!std::isfinite(to[i])) continue;
    const double off = from[i] - to[i];
    squares += off * off;
    largest = std::max(largest, std::abs(off));
    along += off * to[i];
    length += to[i] * to[i];
  }
  return {std::sqrt(squares), largest, length > 0 ? std::abs(along) / length : 0};
}

/// One output of a step: what is compared of it, and how much rounding may do to it.
struct Compared {
  std::vector<double> expected;
  std::vector<double> old;  // what it replaces; empty: nothing
  Distance replaced;
  DType dtype;
  Distance spread;  // by disturbed products

  std::vector<double> part_of(const Array& output) const {
    std::vector<double> values = output.to_doubles();
    for (size_t i = 0; i < old.size(); ++i) values[i] -= old[i];
    return values;
  }

  Distance allowed(double least) const {
    constexpr double kMore = 2;  // than the trials found
    const Distance size = size_of(expected);
    const double digit = !dtype.is_float() ? 0
                                           : std::ldexp(1.0, dtype == f32    ? -23
                                                             : dtype == bf16 ? -7
                                                                             : -10);
    // In f32 the last digit of all elements may be another; in 16 bits, which are rounded by the same random
    // numbers, that of a few.
    const double last = digit * replaced.largest, lasts = dtype == f32 ? digit * replaced.norm : 2 * last;
    const double elements = std::sqrt(static_cast<double>(std::max<size_t>(expected.size(), 1)));
    Distance limit;
    limit.norm = kMore * spread.norm + least * size.norm + lasts;
    limit.largest = kMore * spread.largest + least * size.largest + last;
    limit.along = kMore * spread.along + least;
    // Of what is mostly rounding (the gradient of a bias before a batch norm) a few trials do not show all
    // directions.
    if (size.norm > 0) limit.along += kMore * std::pow(spread.norm / size.norm, 2);
    if (size.norm > 0) limit.along += (dtype == f32 ? 4 * lasts / elements : lasts) / size.norm;
    return limit;
  }
};

}  // namespace

struct StepReference::Impl {
  Impl(const TrainGraph& train_graph, std::span<const Array> arrays, const CompileOptions& tested)
      : made(train_graph), inputs(arrays), precision(reference_precision(tested)) {
    for (const Array& result : on_reference(made.graph, inputs, precision)) {
      const auto donor = made.donations.find(static_cast<int>(outputs.size()));
      Compared& output = outputs.emplace_back();
      if (donor != made.donations.end()) output.old = inputs[donor->second].to_doubles();
      output.dtype = result.dtype();
      output.replaced = size_of(result.to_doubles());
      output.expected = output.part_of(result);
    }
  }

  void draw(const Program& ran) {
    for (const bool opposite : {false, true}) {
      const std::vector<Array> results =
          on_reference(disturbed(made.graph, rounding_of(ran), drawn, opposite), inputs, precision);
      for (size_t o = 0; o < outputs.size(); ++o)
        outputs[o].spread.raise_to(distance(outputs[o].part_of(results[o]), outputs[o].expected));
    }
    ++drawn;
  }

  void forget_draws() {
    drawn = 0;
    for (Compared& output : outputs) output.spread = {};
  }

  StepDifference largest(const Program& ran) const {
    StepDifference worst;
    for (size_t o = 0; o < outputs.size(); ++o) {
      const Compared& output = outputs[o];
      const Distance allowed = output.allowed(least_allowed(ran)),
                     off = distance(output.part_of(ran.output(static_cast<int>(o))), output.expected);
      const Distance size = size_of(output.expected);
      const auto consider = [&](double distance_off, double limit, double whole, std::string_view what) {
        const double share = distance_off == 0 ? 0 : distance_off / limit;
        if (share <= worst.share) return;
        worst = {share, static_cast<int>(o),
                 fmt::format("{}{} by {:.1e} (at most {:.1e} is rounding)",
                             output.old.empty() ? "" : "its change differs ", what, distance_off / whole,
                             limit / whole)};
      };
      const auto whole = [](double part) { return part > 0 ? part : 1; };
      consider(off.norm, allowed.norm, whole(size.norm), "in norm");
      consider(off.largest, allowed.largest, whole(size.largest), "in an element");
      consider(off.along, allowed.along, 1, "in length");
    }
    return worst;
  }

  const TrainGraph& made;
  std::span<const Array> inputs;
  std::string precision;
  std::vector<Compared> outputs;
  int drawn = 0;
  std::string drawn_for;  // the precision that was really computed in
};

StepReference::StepReference(const TrainGraph& made, std::span<const Array> inputs,
                             const CompileOptions& tested)
    : impl_(std::make_unique<Impl>(made, inputs, tested)) {}
StepReference::~StepReference() = default;

StepDifference StepReference::compare(const Program& ran) {
  constexpr int kMostDraws = 8;
  if (ran.precision() != impl_->drawn_for) impl_->forget_draws();
  impl_->drawn_for = ran.precision();
  StepDifference found = impl_->largest(ran);
  // Most steps agree without any; and what one draw missed another may explain, however much it is: where a
  // sign decides (Adam's first step, Lion), a weight whose gradient is next to nothing goes the other way.
  while (found.share > 1 && impl_->drawn < kMostDraws) {
    impl_->draw(ran);
    found = impl_->largest(ran);
  }
  return found;
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
  CompileOptions options = tested;
  options.donations.clear();
  options.inputs.clear();
  options.memory = 0;  // every value is an output here
  Program program = Program::compile(rewrite.graph(), options);
  for (size_t i = 0; i < inputs.size(); ++i) program.bind_input(static_cast<int>(i), inputs[i].clone());
  program.run();
  const std::string precision = reference_precision(tested);
  const std::vector<Array> reference = on_reference(rewrite.graph(), inputs, precision),
                           off = on_reference(disturbed(rewrite.graph(), rounding_of(program), 0, false),
                                              inputs, precision);
  for (size_t i = 0; i < sources.size(); ++i) {
    const std::vector<double> expected = reference[i].to_doubles();
    const double largest = size_of(expected).largest,
                 spread = distance(off[i].to_doubles(), expected).largest,
                 difference = distance(program.output(static_cast<int>(i)).to_doubles(), expected).largest;
    if (difference <= tolerance * largest + 2 * spread) continue;
    const Node& node = graph.node(sources[i]);
    return fmt::format("{}{} ({}) differs by {:.1e}", node.op->name,
                       node.origin.empty() ? "" : fmt::format(" in layer '{}'", node.origin.str()),
                       graph.type(sources[i]).str(), largest > 0 ? difference / largest : difference);
  }
  return {};
}

std::string TrainStep::run_verified(double lr) {
  prepare(group_rates(lr));
  std::vector<Array> inputs;
  for (int i = 0; i < program_.input_count(); ++i) inputs.push_back(program_.input(i).clone());
  run_program();
  const StepDifference found = StepReference(made_, inputs, options_.compile).compare(program_);
  if (found.share <= 1) return {};
  const std::string first = first_difference(made_.graph, inputs, options_.compile, least_allowed(program_));
  return fmt::format("'{}' differs from the reference back end's: {}; {}",
                     made_.graph.output_names()[found.output], found.what,
                     first.empty() ? "every operation alone agrees, so a pass or the plan is at fault "
                                     "(MILLRACE_DISABLE=fuse tells whether it is fusing)"
                                   : "first " + first);
}

}  // namespace millrace::optim
