#include "runtime/lower.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include <millrace/operator.h>
#include <millrace/program.h>

#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "base/seconds_since.h"
#include "ir/alone.h"
#include "ops/work.h"
#include "plan/alike.h"
#include "plan/constants.h"
#include "plan/nearest_choice.h"
#include "runtime/compare.h"
#include "runtime/constant_graph.h"
#include "runtime/kept_copies.h"
#include "runtime/late_result.h"
#include "runtime/ready.h"
#include "target/device.h"
#include "target/tuning_cache.h"

namespace millrace {
namespace {

// A step may take this much more memory when it keeps copies of parameters, or has products joined.
constexpr double kMostMemoryForSpeed = 1.01;
// Scratch memory that is worth a slower kernel: so many bytes, so much of a step.
constexpr int64_t kMuchScratch = 8 << 20;
constexpr double kMuchOfStep = 0.1;
// Less than this much of what a step in bf16 takes beside its parameters, copies cannot make it larger than
// one in fp32, whose activations are twice as large.
constexpr double kManyCopies = 0.45;
// So many operations the reference back end may take for a node of constants, about a second a GFLOP.
constexpr double kLong = 1e8;

class Lowering {
 public:
  Lowering(const Graph& graph, const Target& target, const std::string& precision,
           const CompileOptions& options, DeviceContext device, bool keep = false)
      : graph_(graph),
        target_(target),
        precision_(precision),
        options_(options),
        device_(device),
        choices_(options.choices),
        keep_(keep),
        choose_alike_(options.choose_alike && !options.ready) {}

  Lowered run() {
    if (options_.memory > 0) {
      // What is allowed may be enough for the step as it is without a limit.
      CompileOptions options = options_;
      options.memory = 0;
      Lowered free = Lowering(graph_, target_, precision_, options, device_).run();
      if (free.plan.arena_bytes + free.bound_bytes() <= options_.memory) return free;
    }
    lower_with_copies();
    if (options_.memory > 0)
      fit_memory();
    else
      stay_below_fp32();
    // What is joined is there until its last reader is done, which may be much later.
    undo(kJoined, [](double with, double without) { return with > kMostMemoryForSpeed * without; });
    now_.plan.choices.insert(compared_.begin(), compared_.end());
    return std::move(now_);
  }

  Graph passes_alone() {
    untimed_ = true;
    return pass(0);
  }

 private:
  /// The graph as passes leave it.
  Graph pass(int64_t drop_bytes) {
    now_.passes.clear();
    now_.copies = {options_.donations, std::move(now_.copies.refused), {}, {}, {}, repeat_};
    const auto faster = [&](const std::string& problem, const Form& first, const Form& second) {
      return prefers(problem, first, second);
    };
    const PassContext context{
        target_,
        precision_,
        [&](const Graph& graph, const Node& node, std::span<const Array> operands) {
          return evaluate(graph, node, operands);
        },
        options_.exact,
        {},
        drop_bytes,
        &now_.copies,
        target_.fuses && options_.memory == 0 ? faster : decltype(PassContext::faster){}};
    return options_.ready ? graph_ : run_passes(graph_, context, &now_.passes);
  }

  /// What a node of constants gives: by the reference back end, or where that would take long by a program.
  std::vector<Array> evaluate(const Graph& graph, const Node& node, std::span<const Array> operands) {
    if (!target_.fuses || ops::flops(graph, node) < kLong) {
      if (std::optional<Array> late = late_result(graph, node, operands)) return {*std::move(late)};
      return ref::evaluate_node(graph, node, operands);
    }
    CompileOptions options{.target = options_.target, .exact = options_.exact, .choices = choices_};
    for (size_t i = 0; i < operands.size(); ++i) options.inputs[static_cast<int>(i)] = operands[i];
    return run_once(alone(graph, node), options, &compared_);
  }

  /// Passes, layouts and plan, with so many bytes of activations computed again.
  void lower(int64_t drop_bytes) {
    Graph lowered = pass(drop_bytes);
    if (keep_) now_.lowered = std::make_shared<const Graph>(lowered);
    // What is ready may lie in a file, which all map: it is not copied.
    if (!options_.ready) lowered = share_constants(lowered, &graph_);
    const auto lowered_at = std::chrono::steady_clock::now();
    const LaidOutGraph laid_out = choose_layouts(lowered, target_);
    now_.passes.push_back({"layout", seconds_since(lowered_at), laid_out.graph.size()});
    const auto laid_out_at = std::chrono::steady_clock::now();
    do {
      now_.plan = make_plan(
          laid_out, target_,
          {now_.copies.donations, choices_, options_.exact, frugal_, {}, true, options_.ready, choose_alike_},
          device_);
      // Choices made for the first try hold for the others.
      choices_.insert(now_.plan.choices.begin(), now_.plan.choices.end());
    } while (wastes_memory());
    now_.passes.push_back({"plan", seconds_since(laid_out_at), static_cast<int>(now_.plan.launches.size())});
  }

  /// Whether a training step is largest where a kernel's scratch memory is much of it: then another kernel is
  /// to be taken there. (What only infers is small anyway.) What the caller has recorded holds.
  bool wastes_memory() {
    if (options_.donations.empty() || now_.plan.fixed_peak_launch < 0) return false;
    const PlannedLaunch& launch = now_.plan.launches[now_.plan.fixed_peak_launch];
    if (launch.scratch < 0 || launch.problem.empty() || options_.choices.contains(launch.problem))
      return false;
    const Storage& storage = now_.plan.storages[launch.scratch];
    const int64_t scratch = storage.bytes - storage.slots_bytes;
    return scratch > kMuchScratch &&
           static_cast<double>(scratch) > kMuchOfStep * static_cast<double>(needed_by_any()) &&
           frugal_.insert(launch.problem).second;
  }

  /// Whether the second form of a problem is the faster one: as recorded, or by running both.
  bool prefers(const std::string& asked, const Form& first, const Form& second) {
    const std::string problem = choose_alike_ ? alike_problem(asked) : asked;
    if (undone_.contains(second.name) && !options_.choices.contains(problem)) {
      compared_[problem] = first.name;
      return false;
    }
    const auto recorded = choices_.find(problem);
    // What this machine has timed for one size alone would make graphs differ that are to be alike.
    std::string choice = recorded != choices_.end() ? recorded->second
                         : untimed_                 ? ""
                                                    : tuned_choice(problem).value_or("");
    if (untimed_ && choice != first.name && choice != second.name)
      choice = nearest_choice(options_.choices, problem).value_or(first.name);
    if (choice != first.name && choice != second.name) {
      choice = runs_faster(second.graph, first.graph, options_.target, {{problem, first.name}}) ? second.name
                                                                                                : first.name;
      choice = keep_choice(problem, choice);
    }
    choices_[problem] = compared_[problem] = choice;
    return choice == second.name;
  }

  /// Whether a problem has this form now, and not because the caller has recorded it: what is recorded holds,
  /// so that a resumed run computes what it computed before.
  bool chose(const std::string& form) const {
    return std::any_of(compared_.begin(), compared_.end(), [&](const auto& compared) {
      return compared.second == form && !options_.choices.contains(compared.first);
    });
  }

  /// Where problems have this form by choice and the step `costs` too much memory, with it and without: takes
  /// all back.
  template <typename Costs>
  void undo(const std::string& form, const Costs& costs) {
    if (!chose(form)) return;
    const auto with = static_cast<double>(needed_by_any());
    Lowered chosen = std::exchange(now_, {});
    std::map<std::string, std::string> compared = std::exchange(compared_, {});
    frugal_.clear();
    undone_.insert(form);
    lower_with_copies();
    if (costs(with, static_cast<double>(needed_by_any()))) return;
    undone_.erase(form);
    now_ = std::move(chosen);
    compared_ = std::move(compared);
  }

  /// With few items a step is its parameters, and their copies may take more than activations save in bf16;
  /// and what some read in f32, others in bf16, is there twice.
  void stay_below_fp32() {
    if (precision_ != "bf16" || options_.donations.empty()) return;
    int64_t copies = 0;
    for (const CopyInfo& copy : now_.copies.copies) copies += copy.type.bytes();
    if (!chose(kWide) &&
        static_cast<double>(copies) < kManyCopies * static_cast<double>(now_.plan.fixed_bytes))
      return;
    Lowering wide(graph_, target_, "fp32", options_, device_);
    wide.lower(0);
    const int64_t most = wide.needed_by_any();
    if (needed_by_any() > most) undo(kWide, [](double with, double without) { return without < with; });
    const int64_t before = needed_by_any();
    if (before <= most) return;
    Lowered kept = std::exchange(now_, {});
    repeat_ = true;
    lower(0);
    if (needed_by_any() < before) return;
    repeat_ = false;
    now_ = std::move(kept);
  }

  int64_t needed() const { return now_.plan.arena_bytes + now_.bound_bytes(); }
  /// By any number of threads: what must not choose between results that differ.
  int64_t needed_by_any() const { return now_.plan.fixed_bytes + now_.bound_bytes(); }

  /// Lowers with copies of parameters kept from run to run: all, or where that takes more memory those that
  /// would be there when it is fullest anyway, or none.
  void lower_with_copies() {
    for (bool all = true;; all = false) {
      lower(0);
      const size_t kept_now = now_.copies.make.outputs().size();
      if (kept_now == 0) return;
      std::vector<char> stays(kept_now, 0);
      const auto with = static_cast<double>(needed()),
                 without = static_cast<double>(
                     bytes_without_copies(now_.plan, static_cast<int>(graph_.inputs().size()), stays) +
                     now_.bound_bytes());
      const bool too_much = options_.memory > 0 && with > static_cast<double>(options_.memory);
      std::string why_not;
      if (too_much)
        why_not = "no memory allowed for it";
      else if (with > kMostMemoryForSpeed * without)
        why_not = fmt::format("would raise the step's peak of {:.2f} MB", without / 1e6);
      else
        return;
      if (!all || too_much) stays.assign(kept_now, 0);
      size_t next = 0;
      for (size_t i = 0; i < now_.copies.copies.size(); ++i)
        if (now_.copies.copies[i].why_not.empty() && !stays[next++])
          now_.copies.refused[static_cast<int>(i)] = why_not;
    }
  }

  /// Gives up activations until the memory suffices: how much the peak falls for what is given up shows only
  /// in the plan.
  void fit_memory() {
    constexpr int most_tries = 12, refinements = 3;
    int64_t drop = 0, least = needed(), too_little = 0;
    for (int attempt = 0; attempt < most_tries && needed() > options_.memory; ++attempt) {
      const int64_t before = needed();
      too_little = drop;
      drop += (1 + attempt) * std::max<int64_t>(before - options_.memory, before / 50);
      lower(drop);
      least = std::min(least, needed());
    }
    // Less may do.
    for (int attempt = 0; attempt < refinements && drop > 0 && needed() <= options_.memory; ++attempt) {
      const int64_t middle = too_little + (drop - too_little) / 2, enough = drop;
      lower(middle);
      if (needed() <= options_.memory) {
        drop = middle;
      } else {
        too_little = middle;
        lower(enough);
      }
    }
    if (needed() > options_.memory)
      fail<InputError>(
          "a step needs at least about {:.2f} MB, even when activations are computed again, but only "
          "{:.2f} MB are allowed; allow more, or use a smaller batch",
          static_cast<double>(least) / 1e6, static_cast<double>(options_.memory) / 1e6);
  }

  const Graph& graph_;
  const Target& target_;
  const std::string precision_;
  const CompileOptions& options_;
  DeviceContext device_;
  std::map<std::string, std::string> choices_, compared_;  // all; those of prefers()
  const bool keep_;                                        // the graph as passes leave it
  const bool choose_alike_;
  std::set<std::string> undone_;  // second forms that are only taken where the caller has recorded it
  bool untimed_ = false;          // nothing is timed
  bool repeat_ = false;           // copies of parameters are made where they are read
  std::set<std::string> frugal_;  // problems whose fastest kernel took too much memory
  Lowered now_;
};

}  // namespace

int64_t Lowered::argument_bytes() const {
  int64_t bytes = 0;
  const Graph& graph = plan.source.graph;
  for (const Value& input : graph.inputs()) bytes += graph.type(input).bytes();
  for (size_t o = 0; o < graph.outputs().size(); ++o)
    if (!copies.donations.contains(static_cast<int>(o))) bytes += graph.type(graph.outputs()[o]).bytes();
  return bytes;
}

int64_t Lowered::bound_bytes() const {
  int64_t bytes = argument_bytes();
  const Graph& graph = plan.source.graph;
  for (int i = 0; i < graph.size(); ++i)
    if (const Array* constant = graph.constant_value({i, 0})) bytes += constant->bytes();
  return bytes;
}

Lowered lower(const Graph& graph, const Target& target, const std::string& precision,
              const CompileOptions& options, DeviceContext device, bool keep) {
  return Lowering(graph, target, precision, options, device, keep).run();
}

std::string precision_on(const Target& target, const CompileOptions& options) {
  // What "bf16-pure" stores is the business of those who make graphs; its arithmetic is that of "bf16".
  const bool narrow = options.precision == "bf16" || options.precision == "bf16-pure";
  if (options.precision != "fp32" && options.precision != "fp16" && !narrow)
    fail<InputError>("there is no precision '{}'; choose fp32, bf16, bf16-pure or fp16", options.precision);
  return narrow && target.fast_bf16 ? "bf16" : options.precision == "fp16" ? "fp16" : "fp32";
}

Graph make_ready_untimed(const Graph& graph, const CompileOptions& options) {
  MILLRACE_CHECK(options.donations.empty() && options.memory == 0, "what is kept has neither");
  const Device& device = device_named(options.target);
  const Graph special = specialise(graph, options.bindings);
  return Lowering(special, device.target(), precision_on(device.target(), options), options, device.context())
      .passes_alone();
}

}  // namespace millrace
