#include "cli/profile_report.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/format.h"
#include "cli/json.h"
#include "cli/table.h"
#include "runtime/run_clock.h"

namespace millrace::cli {
namespace {

std::string rate_text(double amount, double seconds) {
  return seconds > 0 ? number_text(amount / seconds / 1e9) : "–";
}

std::string name_of(const LaunchInfo& info) {
  const std::string where = info.origin.str();
  std::string operation = info.operation;
  constexpr size_t most = 60;
  if (operation.size() > most) operation = operation.substr(0, most) + " …)";
  return fmt::format("{}: {}{}", info.provider, operation, where.empty() ? "" : " in " + where);
}

std::string counters_text(const Profile& p) {
  std::map<std::string, double> counts(p.counters.begin(), p.counters.end());
  std::string text;
  if (counts.contains("instructions") && counts["cycles"] > 0)
    text +=
        fmt::format("  {} instructions a cycle\n", number_text(counts["instructions"] / counts["cycles"]));
  if (counts.contains("cache misses"))
    text += fmt::format("  {} last-level cache misses a step: {} from RAM, were each a line of 64 B\n",
                        number_text(counts["cache misses"]), bytes_text(64 * counts["cache misses"]));
  return text;
}

std::string split_text(const Profile& p, const ProfileTitle& title) {
  Table table({"<part", "time", "of the step"});
  const auto row = [&](const std::string& name, double seconds) {
    table.row({name, time_text(seconds), percent_text(seconds / p.seconds)});
  };
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::update})
    if (p.phases[static_cast<int>(phase)] > 0)
      row(phase == Phase::update ? "optimiser" : std::string(phase_name(phase)),
          p.phases[static_cast<int>(phase)]);
  if (p.data > 0) row("waiting for data", p.data);
  row("host", p.host);
  row("step", p.seconds);
  const double kernels = p.phases[0] + p.phases[1] + p.phases[2];
  std::string text = fmt::format("{}, {}\n{} steps measured; figures are means over the faster {}\n\n{}",
                                 title.name, title.detail, p.runs, p.counted, table.str());
  text += fmt::format("\n  {} items/s\n", number_text(static_cast<double>(title.items) / p.seconds));
  double at_peak = 0;
  bool narrow = false;
  for (const LaunchProfile& launch : p.launches) {
    at_peak += launch.roof.compute;
    narrow = narrow || (launch.info.bits == 16 && launch.info.flops > 0 && p.machine.bf16_gflops > 0);
  }
  text += fmt::format("  {} a step: {} GFLOP/s, {} of this machine's {} GFLOP/s in fp32{}\n",
                      flops_text(p.flops()), rate_text(p.flops(), p.seconds),
                      percent_text(at_peak / p.seconds), number_text(p.machine.fp32_gflops),
                      narrow ? fmt::format(" and {} in bf16", number_text(p.machine.bf16_gflops)) : "");
  text += fmt::format("  {} of operands and results a step: {} GB/s; a copy in RAM reaches {} GB/s\n",
                      bytes_text(p.bytes()), rate_text(p.bytes(), p.seconds),
                      number_text(p.machine.ram().gb_per_s));
  text += fmt::format(
      "  roofline: these {} launches would take {} at the machine's limits, {} of what they take\n",
      p.launches.size(), time_text(p.roof()), percent_text(p.roof() / kernels));
  if (!title.data.empty()) text += fmt::format("  {}\n", title.data);
  return text + counters_text(p);
}

std::string groups_text(const Profile& p, const std::vector<LaunchGroup>& groups, const std::string& what,
                        size_t most) {
  Table table({"<" + what, "launches", "time", "of the step", "forward", "backward", "optimiser", "GFLOP/s",
               "GB/s", "FLOP/byte", "of roofline"});
  for (size_t i = 0; i < std::min(groups.size(), most); ++i) {
    const LaunchGroup& g = groups[i];
    const auto phase = [&](Phase which) {
      const double seconds = g.phase_seconds[static_cast<int>(which)];
      return seconds > 0 ? time_text(seconds) : std::string("–");
    };
    table.row({g.name, std::to_string(g.launches), time_text(g.seconds), percent_text(g.seconds / p.seconds),
               phase(Phase::forward), phase(Phase::backward), phase(Phase::update),
               rate_text(g.flops, g.seconds), rate_text(g.bytes, g.seconds),
               g.bytes > 0 ? number_text(g.flops / g.bytes) : "–",
               percent_text(g.roof / std::max(g.seconds, 1e-12))});
  }
  std::string text = "\n" + table.str();
  if (groups.size() > most) text += fmt::format("  … and {} more\n", groups.size() - most);
  return text;
}

std::string kernels_text(const Profile& p, int kernels) {
  std::vector<size_t> order(p.launches.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return p.launches[a].seconds > p.launches[b].seconds; });
  Table table({"time", "of the step", "GFLOP/s", "GB/s", "FLOP/byte", "<bound by", "of roofline", "<kernel"});
  for (size_t i = 0; i < std::min<size_t>(order.size(), static_cast<size_t>(std::max(kernels, 0))); ++i) {
    const LaunchProfile& l = p.launches[order[i]];
    table.row({time_text(l.seconds), percent_text(l.seconds / p.seconds), rate_text(l.info.flops, l.seconds),
               rate_text(l.info.bytes(), l.seconds), number_text(l.intensity()),
               l.roof.memory_bound() ? "memory" : "arithmetic", percent_text(l.share()), name_of(l.info)});
  }
  return table.empty() ? "" : "\n" + table.str();
}

Json split_json(const Profile& p) {
  return json_object({{"forward", Json(p.phases[0])},
                      {"backward", p.phases[1]},
                      {"update", p.phases[2]},
                      {"data", p.data},
                      {"host", p.host},
                      {"step", p.seconds}});
}

Json groups_json(const std::vector<LaunchGroup>& groups) {
  std::vector<Json> list;
  for (const LaunchGroup& g : groups)
    list.push_back(json_object({{"name", Json(g.name)},
                                {"launches", g.launches},
                                {"seconds", g.seconds},
                                {"forward", g.phase_seconds[0]},
                                {"backward", g.phase_seconds[1]},
                                {"update", g.phase_seconds[2]},
                                {"flops", g.flops},
                                {"bytes", g.bytes},
                                {"roofline_seconds", g.roof}}));
  return list;
}

}  // namespace

Profile profile_steps(Program& program, const std::function<void()>& run, int least, double seconds) {
  for (int i = 0; i < 2; ++i) run();
  program.set_profiling(true);
  std::vector<StepMarks> marks;
  const StepCounters counters;
  const int64_t start = clock_now();
  while (static_cast<int>(marks.size()) < least || static_cast<double>(clock_now() - start) < seconds * 1e9) {
    StepMarks m;
    m.begin = m.data = m.inputs = clock_now();
    run();
    m.ran = m.end = clock_now();
    marks.push_back(m);
  }
  auto counts = counters.per_step(static_cast<int>(marks.size()));
  const auto times = program.run_times();
  program.set_profiling(false);
  Profile profile = make_profile(program.launches(), times, marks, this_machine());
  profile.counters = std::move(counts);
  return profile;
}

std::vector<std::pair<std::string, double>> StepCounters::per_step(int steps) const {
  const std::vector<double> now = counters_.read();
  std::vector<std::pair<std::string, double>> counts;
  for (size_t i = 0; i < now.size(); ++i)
    counts.emplace_back(counters_.names()[i], (now[i] - before_[i]) / std::max(steps, 1));
  return counts;
}

std::string profile_text(const Profile& p, const ProfileTitle& title, int depth, int kernels) {
  std::string text = split_text(p, title);
  text += groups_text(p, group_launches(p.launches, kind_of), "kind", 100);
  text += groups_text(
      p, group_launches(p.launches, [&](const LaunchInfo& info) { return layer_of(info, depth); }), "layer",
      30);
  text += kernels_text(p, kernels);
  text += "\nWhat would help most:\n";
  const std::vector<Advice> advice = advise(p);
  for (size_t i = 0; i < std::min<size_t>(advice.size(), 3); ++i)
    text += fmt::format("  {}. up to {} ({} of the step): {}\n", i + 1, time_text(advice[i].seconds),
                        percent_text(advice[i].seconds / p.seconds), advice[i].text);
  return text;
}

void print_kernels(const Profile& p, int kernels) {
  fmt::print("{} launches, {}\n{}", p.launches.size(), time_text(p.seconds), kernels_text(p, kernels));
}

std::string profile_json(const Profile& p, const ProfileTitle& title, int depth) {
  std::vector<Json> launches, advice, levels, parts;
  const StepMarks& m = p.typical_marks;
  const auto since_begin = [&](int64_t at) { return static_cast<double>(at - m.begin) * 1e-9; };
  for (size_t i = 0; i < p.launches.size(); ++i) {
    const LaunchProfile& l = p.launches[i];
    launches.push_back(json_object({{"operation", Json(l.info.operation)},
                                    {"kind", kind_of(l.info)},
                                    {"layer", l.info.origin.place()},
                                    {"phase", std::string(phase_name(l.info.origin.phase))},
                                    {"provider", l.info.provider},
                                    {"kernel", l.info.kernel},
                                    {"types", l.info.types},
                                    {"seconds", l.seconds},
                                    {"flops", l.info.flops},
                                    {"bytes", l.info.bytes()},
                                    {"intensity", l.intensity()},
                                    {"roofline_seconds", l.roof.seconds()},
                                    {"bound", l.roof.memory_bound() ? "memory" : "arithmetic"},
                                    {"roofline_share", l.share()},
                                    {"begin", since_begin(p.typical_times[i])},
                                    {"end", since_begin(p.typical_times[i + 1])}}));
  }
  for (const MemoryLevel& level : p.machine.levels)
    levels.push_back(
        json_object({{"name", Json(level.name)}, {"bytes", level.bytes}, {"gb_per_s", level.gb_per_s}}));
  const auto part = [&](const char* name, int64_t from, int64_t to) {
    if (to > from)
      parts.push_back(
          json_object({{"name", Json(name)}, {"begin", since_begin(from)}, {"end", since_begin(to)}}));
  };
  part("waiting for data", m.begin, m.data);
  part("copying the batch", m.data, m.inputs);
  part("loss, metrics, log", m.ran, m.end);
  for (const Advice& a : advise(p))
    advice.push_back(json_object({{"seconds", Json(a.seconds)}, {"text", a.text}}));
  const auto layer = [&](const LaunchInfo& info) { return layer_of(info, depth); };
  return json_object({{"name", Json(title.name)},
                      {"detail", title.detail},
                      {"data", title.data},
                      {"items_per_second", static_cast<double>(title.items) / p.seconds},
                      {"steps", p.runs},
                      {"counted", p.counted},
                      {"seconds", split_json(p)},
                      {"flops", p.flops()},
                      {"bytes", p.bytes()},
                      {"roofline_seconds", p.roof()},
                      {"machine", fmt::format("{}, {} threads", p.machine.cpu, p.machine.threads)},
                      {"peak_gflops", p.machine.fp32_gflops},
                      {"levels", levels},
                      {"typical_seconds", since_begin(m.end)},
                      {"parts", parts},
                      {"counters", json_object(p.counters)},
                      {"kinds", groups_json(group_launches(p.launches, kind_of))},
                      {"layers", groups_json(group_launches(p.launches, layer))},
                      {"launches", launches},
                      {"advice", advice}})
      .text;
}

std::string profile_trace(const Profile& p, const ProfileTitle& title) {
  std::vector<Json> events;
  const int64_t zero = p.typical_marks.begin;
  constexpr int64_t host = 1, kernels = 2;
  const auto name_thread = [&](int64_t thread, const char* name) {
    events.push_back(json_object({{"name", Json("thread_name")},
                                  {"ph", "M"},
                                  {"pid", int64_t{1}},
                                  {"tid", thread},
                                  {"args", json_object({{"name", Json(name)}})}}));
  };
  const auto span = [&](int64_t thread, const std::string& name, const std::string& category, int64_t from,
                        int64_t to, const Json& arguments) {
    events.push_back(json_object({{"name", Json(name)},
                                  {"cat", category},
                                  {"ph", "X"},
                                  {"ts", static_cast<double>(from - zero) / 1e3},
                                  {"dur", static_cast<double>(to - from) / 1e3},
                                  {"pid", int64_t{1}},
                                  {"tid", thread},
                                  {"args", arguments}}));
  };
  name_thread(host, "step");
  name_thread(kernels, "kernels");
  const StepMarks& m = p.typical_marks;
  const Json nothing = Json::raw("{}");
  span(host, fmt::format("{}, {}", title.name, title.detail), "step", m.begin, m.end, nothing);
  if (m.data > m.begin) span(host, "waiting for data", "data", m.begin, m.data, nothing);
  if (m.inputs > m.data) span(host, "copying the batch", "host", m.data, m.inputs, nothing);
  if (m.end > m.ran) span(host, "loss, metrics, log", "host", m.ran, m.end, nothing);
  for (size_t l = 0; l < p.launches.size() && l + 1 < p.typical_times.size(); ++l) {
    const LaunchProfile& launch = p.launches[l];
    span(kernels, name_of(launch.info), std::string(phase_name(launch.info.origin.phase)), p.typical_times[l],
         p.typical_times[l + 1],
         json_object({{"layer", Json(launch.info.origin.place())},
                      {"kernel", launch.info.kernel},
                      {"types", launch.info.types},
                      {"MFLOP", launch.info.flops / 1e6},
                      {"MB", launch.info.bytes() / 1e6},
                      {"roofline share of the mean", launch.share()}}));
  }
  return json_object({{"displayTimeUnit", Json("ms")}, {"traceEvents", events}}).text + "\n";
}

}  // namespace millrace::cli
