#include "runtime/profile.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"

namespace millrace {
namespace {

double seconds_between(int64_t from, int64_t to) { return static_cast<double>(to - from) * 1e-9; }

std::string milliseconds(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} µs", 1e6 * seconds) : fmt::format("{:.2f} ms", 1e3 * seconds);
}

/// The faster half of the runs, by time of the whole step: what else ran on the machine is seen least in
/// them.
std::vector<size_t> faster_half(std::span<const StepMarks> marks) {
  std::vector<size_t> order(marks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return marks[a].end - marks[a].begin < marks[b].end - marks[b].begin;
  });
  order.resize((order.size() + 1) / 2);
  return order;
}

/// Of each run the step that it was in. Where batches have several shapes, each with a program of its own,
/// there are steps without a run of this one.
std::vector<StepMarks> marks_of(const std::vector<std::vector<int64_t>>& runs,
                                std::span<const StepMarks> given) {
  std::vector<StepMarks> marks;
  size_t next = 0;
  for (const std::vector<int64_t>& run : runs) {
    while (next < given.size() && given[next].end < run.back()) ++next;
    if (next < given.size() && given[next].begin <= run.front())
      marks.push_back(given[next++]);
    else
      marks.push_back({run.front(), run.front(), run.front(), run.back(), run.back()});
  }
  return marks;
}

/// The level that holds what is used again after `distance` bytes.
const MemoryLevel& level_of(const Machine& machine, double distance) {
  for (const MemoryLevel& level : machine.levels)
    if (distance <= static_cast<double>(level.bytes)) return level;
  return machine.ram();
}

}  // namespace

Roof roof_of(const LaunchInfo& launch, const Machine& machine) {
  Roof roof;
  roof.compute = launch.flops / (machine.gflops(launch.bits) * 1e9);
  for (const LaunchInfo::Traffic& t : launch.traffic)
    roof.memory += t.bytes / (level_of(machine, t.distance).gb_per_s * 1e9);
  return roof;
}

double Profile::roof() const {
  double sum = 0;
  for (const LaunchProfile& l : launches) sum += l.roof.seconds();
  return sum;
}
double Profile::flops() const {
  double sum = 0;
  for (const LaunchProfile& l : launches) sum += l.info.flops;
  return sum;
}
double Profile::bytes() const {
  double sum = 0;
  for (const LaunchProfile& l : launches) sum += l.info.bytes();
  return sum;
}

Profile make_profile(std::vector<LaunchInfo> launches, const std::vector<std::vector<int64_t>>& runs,
                     std::span<const StepMarks> given, const Machine& machine) {
  Profile p;
  p.machine = machine;
  for (LaunchInfo& info : launches) {
    const Roof roof = roof_of(info, machine);
    p.launches.push_back({std::move(info), 0, roof});
  }
  p.runs = static_cast<int>(runs.size());
  if (runs.empty()) return p;
  const std::vector<StepMarks> marks = marks_of(runs, given);
  const std::vector<size_t> counted = faster_half(marks);
  p.counted = static_cast<int>(counted.size());
  const double share = 1.0 / static_cast<double>(counted.size());
  for (const size_t r : counted) {
    const StepMarks& m = marks[r];
    const std::vector<int64_t>& at = runs[r];
    p.seconds += share * seconds_between(m.begin, m.end);
    p.data += share * seconds_between(m.begin, m.data);
    p.host += share * (seconds_between(m.data, at.front()) + seconds_between(at[p.launches.size()], m.end));
    for (size_t l = 0; l < p.launches.size(); ++l)
      p.launches[l].seconds += share * seconds_between(at[l], at[l + 1]);
  }
  for (const LaunchProfile& l : p.launches) p.phases[static_cast<int>(l.info.origin.phase)] += l.seconds;
  const size_t typical = counted[counted.size() / 2];
  p.typical_marks = marks[typical];
  p.typical_times = runs[typical];
  return p;
}

bool is_fused(const LaunchInfo& launch) { return launch.operation.starts_with("fused("); }

std::string kind_of(const LaunchInfo& launch) {
  if (!is_fused(launch)) return launch.operation;
  if (launch.reduces) return "fused reduction";
  return launch.flops > 0 ? "fused element-wise" : "data movement";
}

std::string layer_of(const LaunchInfo& launch, int depth) {
  std::string layer = launch.origin.place();
  const size_t dot = layer.rfind('.');
  if (launch.origin.phase == Phase::update && dot != std::string::npos) layer.resize(dot);
  for (size_t d = 0, from = 0; d < static_cast<size_t>(depth); ++d) {
    const size_t at = layer.find('.', from);
    if (at == std::string::npos) break;
    if (d + 1 == static_cast<size_t>(depth)) layer.resize(at);
    from = at + 1;
  }
  return layer.empty() ? "(no layer)" : layer;
}

std::vector<LaunchGroup> group_launches(std::span<const LaunchProfile> launches,
                                        const std::function<std::string(const LaunchInfo&)>& name) {
  std::map<std::string, LaunchGroup> groups;
  for (const LaunchProfile& l : launches) {
    LaunchGroup& group = groups[name(l.info)];
    ++group.launches;
    group.seconds += l.seconds;
    group.flops += l.info.flops;
    group.bytes += l.info.bytes();
    group.roof += l.roof.seconds();
    group.compute_roof += l.roof.compute;
    group.memory_roof += l.roof.memory;
    group.phase_seconds[static_cast<int>(l.info.origin.phase)] += l.seconds;
  }
  std::vector<LaunchGroup> sorted;
  for (auto& [key, group] : groups) {
    group.name = key;
    sorted.push_back(std::move(group));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const LaunchGroup& a, const LaunchGroup& b) { return a.seconds > b.seconds; });
  return sorted;
}

std::vector<Advice> advise(const Profile& p) {
  std::vector<Advice> advice;
  const auto percent = [&](double seconds) { return 100 * seconds / std::max(p.seconds, 1e-12); };
  const auto kind_and_phase = [](const LaunchInfo& info) {
    return fmt::format("{}, {}", kind_of(info), phase_name(info.origin.phase));
  };
  for (const LaunchGroup& g : group_launches(p.launches, kind_and_phase)) {
    const double gap = g.seconds - g.roof;
    if (gap <= 0) continue;
    const bool memory = g.memory_roof >= g.compute_roof;
    advice.push_back(
        {gap,
         fmt::format("{}: {} launch{}, {} ({:.0f} % of the step) at {:.0f} % of the roofline, bound by {}",
                     g.name, g.launches, g.launches == 1 ? "" : "es", milliseconds(g.seconds),
                     percent(g.seconds), 100 * g.roof / g.seconds, memory ? "memory" : "arithmetic")});
  }
  if (p.data > 0)
    advice.push_back(
        {p.data, fmt::format("waiting for data: {} ({:.0f} % of the step); decoding and augmenting "
                             "use the same CPUs as the step",
                             milliseconds(p.data), percent(p.data))});
  if (p.host > 0)
    advice.push_back(
        {p.host, fmt::format("the host between kernels: {} ({:.0f} % of the step) for copying the batch, "
                             "metrics and bookkeeping",
                             milliseconds(p.host), percent(p.host))});
  std::stable_sort(advice.begin(), advice.end(),
                   [](const Advice& a, const Advice& b) { return a.seconds > b.seconds; });
  return advice;
}

}  // namespace millrace
