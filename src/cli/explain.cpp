// What a step was compiled to, and why.
#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "base/file.h"
#include "base/format.h"
#include "cli/explain_svg.h"
#include "cli/json.h"
#include "cli/model_step.h"
#include "cli/outputs.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "cli/zoo.h"
#include "passes/pass.h"
#include "passes/rules/rule.h"
#include "runtime/profile.h"
#include "target/provider.h"
#include "train/trainer.h"

namespace millrace::cli {
namespace {

struct ExplainArguments : StepArguments {
  std::string svg;
};

/// "fused(add mul)" → "fused".
std::string short_name(const LaunchInfo& launch) {
  return launch.operation.substr(0, launch.operation.find('('));
}

/// Operators inside of fused groups.
size_t fused_operators(const std::vector<LaunchInfo>& launches) {
  size_t count = 0;
  for (const LaunchInfo& l : launches)
    if (is_fused(l))
      count += 1 + static_cast<size_t>(std::count(l.operation.begin(), l.operation.end(), ' '));
  return count;
}

std::string passes_text(const Program& program) {
  Table table({"<stage", "time", "operators after it"});
  double sum = 0;
  for (const PassInfo& pass : program.passes()) {
    table.row({pass.name, time_text(pass.seconds), std::to_string(pass.nodes)});
    sum += pass.seconds;
  }
  return fmt::format(
      "Compilation, {} (\"plan\" chooses providers, builds kernels or loads them from the cache, and places "
      "memory; its number is of launches)\n{}",
      time_text(sum), table.str());
}

using Counts = std::map<std::string, int>;

/// "3 add, 1 mul"
std::string counts_text(const Counts& counts) {
  std::string list;
  for (const auto& [what, count] : counts)
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, what);
  return list;
}

/// Who builds what.
std::string providers_text(const std::vector<LaunchInfo>& launches) {
  std::map<std::string, Counts> built;
  Counts sums;
  for (const LaunchInfo& l : launches) {
    ++built[l.provider][short_name(l)];
    ++sums[l.provider];
  }
  Table table({"<provider", "launches", "<of"});
  for (const auto& [provider, operations] : built)
    table.row({provider, std::to_string(sums[provider]), counts_text(operations)});
  return "\nProviders\n" + table.str();
}

/// What passes asked the machine about: "join right of … : …" as it is, or rewritten; "bf16 or f32: …".
std::vector<std::pair<std::string, std::string>> compared_forms(const Program& program) {
  constexpr std::string_view forms[] = {"as it is", "rewritten", "bf16", "f32"};  // kernels have other names
  std::vector<std::pair<std::string, std::string>> compared;
  for (const auto& item : program.choices())
    if (std::find(std::begin(forms), std::end(forms), item.second) != std::end(forms))
      compared.push_back(item);
  return compared;
}

std::string compared_text(const Program& program) {
  Table table({"<compared by running both", "<taken"});
  for (const auto& [problem, choice] : compared_forms(program)) table.row({problem, choice});
  return table.empty() ? "" : "\n" + table.str();
}

/// Who declined what and why, the reason met most often first.
std::string declined_text(const std::vector<LaunchInfo>& launches) {
  std::map<std::string, Counts> reasons;  // "provider: reason" → operation → count
  Counts sums;
  for (const LaunchInfo& l : launches) {
    std::string rest = l.declined;
    while (!rest.empty()) {
      const size_t end = rest.find("; ");
      const std::string reason = rest.substr(0, end);
      rest = end == std::string::npos ? "" : rest.substr(end + 2);
      ++reasons[reason][short_name(l)];
      ++sums[reason];
    }
  }
  std::vector<std::string> order;
  for (const auto& item : reasons) order.push_back(item.first);
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto& a, const auto& b) { return sums[a] > sums[b]; });
  Table table({"<declined by, reason", "launches", "<of"});
  for (const std::string& reason : order)
    table.row({reason, std::to_string(sums[reason]), counts_text(reasons[reason])});
  return table.empty() ? "" : "\n" + table.str();
}

std::string launches_text(const std::vector<LaunchInfo>& launches) {
  Table table({"#", "<phase", "<provider", "<operation", "<layer", "<result", "<kernel"});
  for (size_t i = 0; i < launches.size(); ++i) {
    const LaunchInfo& l = launches[i];
    table.row({std::to_string(i),
               l.origin.phase == Phase::update ? "optimiser" : std::string(phase_name(l.origin.phase)),
               l.provider, l.operation.size() > 70 ? l.operation.substr(0, 70) + " …)" : l.operation,
               l.origin.place(), l.types, l.kernel});
  }
  return "\nLaunches, in order\n" + table.str();
}

std::string memory_text(const Program& program) {
  const auto arena = static_cast<double>(program.arena_bytes()),
             bound = static_cast<double>(program.bound_bytes());
  Table table({"bytes", "<tensor alive where the arena is fullest"});
  for (const auto& [bytes, label] : program.peak_breakdown(15))
    table.row({bytes_text(static_cast<double>(bytes)), label});
  return fmt::format(
      "\nMemory of a step: {} = {} of inputs, parameters, state and outputs + {} of intermediate values\n{}",
      bytes_text(arena + bound), bytes_text(bound), bytes_text(arena), table.str());
}

/// What becomes of the copies of parameters that products read; each outcome with its reason.
std::map<std::string, std::vector<CopyInfo>> copies_by_outcome(const Program& program) {
  std::map<std::string, std::vector<CopyInfo>> outcomes;
  for (CopyInfo& copy : program.copies())
    outcomes[copy.why_not.empty() ? "the update, beside the parameter" : "every run: " + copy.why_not]
        .push_back(std::move(copy));
  return outcomes;
}

std::string copies_text(const Program& program) {
  Table table({"<written by", "copies", "bytes", "<of"});
  for (const auto& [outcome, copies] : copies_by_outcome(program)) {
    constexpr size_t most_named = 3;
    double bytes = 0;
    std::string names;
    for (size_t i = 0; i < copies.size(); ++i) {
      bytes += static_cast<double>(copies[i].type.bytes());
      if (i < most_named) names += (i ? ", " : "") + copies[i].parameter;
    }
    if (copies.size() > most_named) names += ", …";
    table.row({outcome, std::to_string(copies.size()), bytes_text(bytes), names});
  }
  if (table.empty()) return "";
  return "\nCopies of parameters that products read (packed forms are made where they are read)\n" +
         table.str();
}

/// `lengths`: of the rows of each step that is compiled; none where all are alike.
std::string inputs_text(const Program& program, const std::vector<int64_t>& lengths) {
  std::string text = fmt::format("one graph, {} inputs of fixed shapes", program.input_count());
  if (lengths.size() > 1)
    text += fmt::format("; {} such steps are compiled, for rows of {}: this is the last one", lengths.size(),
                        fmt::join(lengths, ", "));
  return text + "\n";
}

std::string explanation(const Program& program, const std::vector<LaunchInfo>& launches,
                        const std::string& title, const std::vector<int64_t>& lengths) {
  size_t groups = 0;
  for (const LaunchInfo& l : launches) groups += is_fused(l) ? 1 : 0;
  std::string text =
      fmt::format("{}\n{}{} launches; {} of them are fused groups of {} operators\n\n", title,
                  inputs_text(program, lengths), launches.size(), groups, fused_operators(launches));
  return text + passes_text(program) + providers_text(launches) + declined_text(launches) +
         compared_text(program) + launches_text(launches) + copies_text(program) + memory_text(program);
}

std::string explanation_json(const Program& program, const std::vector<LaunchInfo>& launches,
                             const std::string& title, const std::vector<int64_t>& lengths) {
  std::vector<Json> passes, list, copies, compared, peak;
  for (const PassInfo& pass : program.passes())
    passes.push_back(
        json_object({{"name", Json(pass.name)}, {"seconds", pass.seconds}, {"nodes", pass.nodes}}));
  int64_t groups = 0;
  for (const LaunchInfo& l : launches) {
    groups += is_fused(l) ? 1 : 0;
    list.push_back(json_object({{"operation", Json(l.operation)},
                                {"layer", l.origin.place()},
                                {"phase", std::string(phase_name(l.origin.phase))},
                                {"provider", l.provider},
                                {"kernel", l.kernel},
                                {"declined", l.declined},
                                {"types", l.types},
                                {"flops", l.flops},
                                {"bytes", l.bytes()},
                                {"reads", l.reads}}));
  }
  for (const CopyInfo& copy : program.copies())
    copies.push_back(json_object({{"parameter", Json(copy.parameter)},
                                  {"type", copy.type.str()},
                                  {"layer", copy.origin.place()},
                                  {"by_update", copy.why_not.empty()},
                                  {"why_not", copy.why_not}}));
  for (const auto& [problem, choice] : compared_forms(program))
    compared.push_back(json_object({{"problem", Json(problem)}, {"taken", choice}}));
  for (const auto& [bytes, label] : program.peak_breakdown(15))
    peak.push_back(json_object({{"bytes", Json(bytes)}, {"tensor", label}}));
  return json_object({{"name", Json(title)},
                      {"lengths", lengths},
                      {"inputs", program.input_count()},
                      {"passes", passes},
                      {"fused_groups", groups},
                      {"fused_operators", static_cast<int64_t>(fused_operators(launches))},
                      {"launches", list},
                      {"copies", copies},
                      {"compared", compared},
                      {"arena_bytes", program.arena_bytes()},
                      {"bound_bytes", program.bound_bytes()},
                      {"peak", peak}})
      .text;
}

int show_program(const ExplainArguments& a, const Program& program, const std::string& title,
                 const std::vector<int64_t>& lengths = {}) {
  const std::vector<LaunchInfo> launches = program.launches();
  if (!a.svg.empty()) write_file(a.svg, launches_svg(launches, title));
  fmt::print("{}", a.json ? explanation_json(program, launches, title, lengths) + "\n"
                          : explanation(program, launches, title, lengths));
  if (!a.svg.empty() && !a.json) fmt::print("\n{}: the launches and what they read of each other\n", a.svg);
  return 0;
}

int run_explain(ExplainArguments& a) {
  require_named(a.svg, "--svg");
  if (a.of_file()) {
    ModelStep step(a);
    return show_program(a, step.program(), fmt::format("{}, {}", a.recipe, step.detail()));
  }
  if (!a.zoo.model.empty()) {
    ZooStep step(a.zoo);
    return show_program(a, step.program(),
                        fmt::format("{}, {}", a.zoo.model,
                                    step_text(a.zoo.train, a.zoo.batch, a.zoo.precision, step.program())));
  }
  train::Trainer trainer(train::recipe_of(a.recipe, a.overrides), a.observer());
  const task::Recipe::Train& train = trainer.recipe().train;
  return show_program(
      a, trainer.program(),
      fmt::format("{}, {}", a.recipe, step_text(true, train.batch, train.precision, trainer.program())),
      trainer.lengths());
}

template <typename Kind>
std::string kinds_text(const Registry<Kind>& kinds) {
  std::string text;
  for (const Kind* kind : kinds.all()) text += fmt::format("  {:<24} {}\n", kind->name, kind->doc);
  return text;
}

Action declare_explain(Command& command) {
  auto a = std::make_shared<ExplainArguments>();
  a->declare(command)
      .option("--memory", a->zoo.memory, "most memory of a step, e.g. 1.5GB, with --model")
      .option("--svg", a->svg, "draw the launches and what they read of each other")
      .flag("--json", a->json, "print one JSON object")
      .footer(
          "Compiles the step and prints what became of it: passes with their times, fused groups, providers "
          "and why "
          "others\n"
          "declined, every launch with layout and kernel, memory and the tensors that make its peak. Nothing "
          "is "
          "trained.\n\n"
          "  millrace explain examples/cifar10.toml train.precision=fp32\n"
          "  millrace explain --model resnet18 --infer --svg resnet18.svg\n"
          "  millrace explain model.onnx --sizes batch=16\n\n"
          "Passes in their order (MILLRACE_DISABLE=fuse,cse leaves some out, MILLRACE_DUMP=fuse prints "
          "graphs):\n" +
          kinds_text(passes()) + "\nRules of simplify, which may be left out too:\n" + kinds_text(rules()) +
          "\nProviders of kernels, by preference:\n" + kinds_text(cpu::providers()));
  return [a] { return run_explain(*a); };
}

}  // namespace

MILLRACE_VERB(explain){"explain", "say what a training step is made of: kernels, providers, memory",
                       declare_explain, 110};

}  // namespace millrace::cli
