#include "plan/choose_kernels.h"

#include <algorithm>
#include <utility>

#include <millrace/operator.h>

#include "base/contains.h"
#include "base/format.h"
#include "base/words.h"
#include "passes/pass.h"
#include "plan/alike.h"
#include "plan/fastest.h"
#include "plan/nearest_choice.h"
#include "target/shared_constants.h"
#include "target/tuning_cache.h"

namespace millrace {
namespace {

using Takers = std::vector<const Provider*>;

/// Identifies a node by what it computes, so that recorded choices fit the same node of a later compilation.
std::string choice_key(const LaidOutGraph& source, const Node& node) {
  std::string key(node.op->name);
  // Constant weights are packed once: another problem than packing them in every run.
  for (size_t k = 0; k < node.operands.size(); ++k)
    key += fmt::format(" {}{}{}", source.graph.type(node.operands[k]).str(),
                       fmt::join(source.layout(node.operands[k]), ""),
                       k == 1 && source.graph.constant_value(node.operands[k]) ? " constant" : "");
  for (const auto& [name, value] : node.attributes.items())
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value))
      key += fmt::format(" {}={}", name, fmt::join(*list, ","));
    else if (const auto* flag = std::get_if<bool>(&value); flag && *flag)
      key += fmt::format(" {}", name);
  return key;
}

/// Those of some providers that a choice names, in its order: "gemm,onednn" of the machine's own, the fastest
/// first.
Takers named_in(const std::string& text, const Takers& takers) {
  Takers found;
  for (const std::string& name : split(text))
    for (const Provider* provider : takers)
      if (provider->name() == name) found.push_back(provider);
  return found;
}

class Chooser {
 public:
  Chooser(Plan& plan, const Target& target, const PlanOptions& options, DeviceContext device)
      : plan_(plan), target_(target), options_(options), device_(device) {}

  void run() {
    find_takers();
    for (size_t l = 0; l < launches().size(); ++l) recall(launches()[l], takers_[l]);
    device_.threads().parallel(std::ssize(launches()), [&](int64_t l) {
      PlannedLaunch& launch = launches()[l];
      if (takers_[l].empty())
        launch.kernel = build_control_flow(request_of(launch), target_, device_);
      else if (takers_[l].size() == 1)
        launch.kernel = takers_[l][0]->build(request_of(launch));
    });
    for (size_t l = 0; l < launches().size(); ++l) {
      PlannedLaunch& launch = launches()[l];
      if (!launch.kernel) contest(launch, takers_[l]);
      const bool loop = graph().node(launch.node).op->op_class == OpClass::loop;
      launch.provider = !takers_[l].empty() ? takers_[l][0]->name() : loop ? "loop" : "branch";
    }
  }

 private:
  const Graph& graph() const { return plan_.source.graph; }
  std::vector<PlannedLaunch>& launches() { return plan_.launches; }

  /// Who may build what; nobody does where a body is run, which is the planner's own business.
  void find_takers() {
    const std::vector<int> uses = graph().use_counts();
    for (int i = 0; i < graph().size(); ++i) {
      const Node& node = graph().node(i);
      if (uses[i] == 0 || node.op->is_given() || is_view(plan_.source, i)) continue;
      PlannedLaunch launch;
      launch.node = i;
      takers_.push_back(node.op->runs_body() ? Takers() : takers_of(launch));
      launches().push_back(std::move(launch));
    }
  }

  Takers takers_of(PlannedLaunch& launch) const {
    const Node& node = graph().node(launch.node);
    Takers takers;
    for (const auto& provider : target_.providers) {
      // The last one takes what is left: it is slow, and so would be timing it.
      if (!takers.empty() && provider == target_.providers.back()) break;
      auto reason = provider->why_not(graph(), node);
      if (!reason && options_.exact && !provider->exact()) reason = "exact results are asked for";
      if (!reason) {
        takers.push_back(provider.get());
        if (!provider->contested(graph(), node)) break;
        continue;
      }
      if (provider->concerns(node)) decline(launch, *provider, *reason);
    }
    if (takers.empty())
      for (const auto& provider : target_.providers)
        if (!provider->concerns(node))
          decline(launch, *provider, provider->why_not(graph(), node).value_or(""));
    MILLRACE_CHECK(!takers.empty(), "no provider of '{}' takes {}: {}", target_.name, node.op->name,
                   launch.declined);
    return takers;
  }

  static void decline(PlannedLaunch& launch, const Provider& provider, const std::string& why) {
    launch.declined += fmt::format("{}{}: {}", launch.declined.empty() ? "" : "; ", provider.name(), why);
  }

  KernelRequest request_of(const PlannedLaunch& launch) const {
    const Node& node = graph().node(launch.node);
    KernelRequest request{graph(), node, {}, {}};
    for (const Value& operand : node.operands) {
      request.operand_layouts.push_back(plan_.source.layout(operand));
      request.steady.push_back(is_steady(operand) ? 1 : 0);
    }
    request.result_layouts = plan_.source.layouts[launch.node];
    return request;
  }

  /// Whether a value stays the same from run to run: an input that does, or a view of one.
  bool is_steady(Value value) const {
    while (graph().node(value).op->op_class == OpClass::view) value = graph().node(value).operands[0];
    const auto& inputs = graph().inputs();
    for (size_t i = 0; i < options_.steady_inputs.size(); ++i)
      if (options_.steady_inputs[i] && inputs[i] == value) return true;
    return false;
  }

  void settle(PlannedLaunch& launch, Takers& takers, const Provider* chosen, const char* why) {
    for (const Provider* provider : takers)
      if (provider != chosen) decline(launch, *provider, why);
    takers = {chosen};
    plan_.choices[launch.problem] = chosen->name();
  }

  /// Where the choice is known, from the run or the cache of this machine, one taker is left; or those that
  /// are nearly as fast, the fastest first.
  void recall(PlannedLaunch& launch, Takers& takers) {
    if (takers.size() < 2) return;
    launch.problem = choice_key(plan_.source, graph().node(launch.node));
    if (options_.choose_alike) {
      launch.problem = alike_problem(launch.problem) + " by";
      for (const Provider* provider : takers)
        launch.problem += " " + provider->name();  // may be others for some
    }
    if (options_.frugal.contains(launch.problem)) return;
    const auto recorded = options_.choices.find(launch.problem);
    Takers known;
    if (recorded != options_.choices.end()) known = named_in(recorded->second, takers);
    if (known.empty() && options_.nearest)
      known = named_in(nearest_choice(options_.choices, launch.problem).value_or(""), takers);
    if (known.empty()) known = named_in(tuned_choice(launch.problem).value_or(""), takers);
    if (known.empty()) return;
    if (known.size() == 1 || forms_there(launch).empty())
      return settle(launch, takers, known[0], "measured slower");
    near_[launch.problem] = known;
  }

  /// Decides between several takers. Equal problems are decided once.
  void contest(PlannedLaunch& launch, Takers& takers) {
    const KernelRequest request = request_of(launch);
    const auto same = [&](const Provider* provider) {
      return provider->name() == plan_.choices[launch.problem];
    };
    const bool frugal = options_.frugal.contains(launch.problem);
    if (plan_.choices.contains(launch.problem)) {
      settle(launch, takers, *std::find_if(takers.begin(), takers.end(), same),
             frugal ? "takes more memory" : "measured slower");
      launch.kernel = takers[0]->build(request);
      return;
    }
    if (frugal) {
      std::vector<std::unique_ptr<Kernel>> kernels;
      for (const Provider* provider : takers) kernels.push_back(provider->build(request));
      const size_t least = most_frugal(kernels);
      launch.kernel = std::move(kernels[least]);
      return settle(launch, takers, takers[least], "takes more memory");
    }
    std::vector<Candidate> near;
    for (const Provider* provider : near_[launch.problem]) near.push_back({provider, nullptr});
    // (Held, so that they stay where they are while others are made.)
    const std::vector<NamedForm> there = forms_there(launch);
    if (near.empty()) {
      near = timed(request, takers);
      std::string names;
      for (const Candidate& each : near) names += (names.empty() ? "" : ",") + each.provider->name();
      const std::string kept = keep_choice(launch.problem, names);
      if (const Takers others = named_in(kept, takers); kept != names && !others.empty()) {
        near.clear();
        for (const Provider* provider : others) near.push_back({provider, nullptr});
      }
    }
    const auto kernel_of = [&](Candidate& candidate) -> Kernel& {
      if (!candidate.kernel) candidate.kernel = candidate.provider->build(request);
      return *candidate.kernel;
    };
    auto best = near.begin();
    if (!there.empty())
      best = std::find_if(near.begin(), near.end(),
                          [&](Candidate& c) { return has_forms(kernel_of(c), there); });
    if (best == near.end()) best = near.begin();
    kernel_of(*best);
    launch.kernel = std::move(best->kernel);
    settle(launch, takers, best->provider,
           best == near.begin() ? "measured slower" : "would pack the weights once more");
  }

  struct Candidate {
    const Provider* provider;
    std::unique_ptr<Kernel> kernel;  // null: not built yet
  };

  /// The fastest taker, and those nearly as fast, timed as kernels that nothing is steady for.
  std::vector<Candidate> timed(KernelRequest request, const Takers& takers) const {
    const std::vector<char> steady = std::exchange(request.steady, {});
    const bool any_steady = contains(steady, 1);
    std::vector<std::unique_ptr<Kernel>> kernels;
    for (const Provider* provider : takers) kernels.push_back(provider->build(request));
    std::vector<Candidate> near;
    for (const size_t k : fastest(kernels, request, device_))
      near.push_back({takers[k], any_steady ? nullptr : std::move(kernels[k])});
    return near;
  }

  /// What has been made of a node's constants, for whatever executable.
  std::vector<NamedForm> forms_there(const PlannedLaunch& launch) const {
    std::vector<NamedForm> all;
    for (const Value& operand : graph().node(launch.node).operands)
      if (const Array* constant = graph().constant_value(operand); constant && constant->count() > 1)
        for (NamedForm& form : forms_of(*constant)) all.push_back(std::move(form));
    return all;
  }

  /// Whether all that a kernel has packed was there before.
  static bool has_forms(const Kernel& kernel, const std::vector<NamedForm>& there) {
    const auto* const packing = dynamic_cast<const PackingKernel*>(&kernel);
    if (!packing) return false;
    const std::vector<Array>& packed = packing->packed();
    return !packed.empty() && std::all_of(packed.begin(), packed.end(), [&](const Array& array) {
      return std::any_of(there.begin(), there.end(),
                         [&](const NamedForm& form) { return form.array.data() == array.data(); });
    });
  }

  Plan& plan_;
  const Target& target_;
  const PlanOptions& options_;
  DeviceContext device_;
  std::vector<Takers> takers_;          // of each launch
  std::map<std::string, Takers> near_;  // of problems: the fastest, and those nearly as fast
};

}  // namespace

void choose_kernels(Plan& plan, const Target& target, const PlanOptions& options, DeviceContext device) {
  Chooser(plan, target, options, device).run();
}

}  // namespace millrace
