// What a training will take, before it begins.
#include "train/estimate.h"

#include <fmt/core.h>

#include "base/format.h"
#include "base/size_text.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs.h"

namespace millrace::cli {
namespace {

struct EstimateArguments {
  std::string recipe, memory;
  std::vector<std::string> overrides;
  train::DescribedMachine machine;
  bool json = false;
};

std::string long_time(double seconds) { return seconds >= 60 ? duration_text(seconds) : time_text(seconds); }

Json estimate_json(const train::Estimate& e, const std::string& unit) {
  return json_object({{"read_seconds", Json(e.read)},
                      {"compile_seconds", e.compile},
                      {"step_seconds", e.step},
                      {"test_seconds", e.test},
                      {"epoch_seconds", e.epoch},
                      {"total_seconds", e.total},
                      {unit + "_per_second", e.samples_per_second},
                      {"load_per_second", e.load_per_second},
                      {"memory_bytes", e.memory_bytes},
                      {"machine_bytes", e.machine_bytes},
                      {"fits", e.fits()},
                      {"bound_by", e.binds}});
}

void print_estimates(const EstimateArguments& a, const train::Estimates& all) {
  const train::Preparation& p = all.prepared;
  fmt::print("{}: {} {}, {} steps of an epoch, {} in all\n\n", a.recipe, thousands(p.samples), p.unit,
             thousands(p.steps_per_epoch), thousands(p.steps));
  const bool two = a.machine.given();
  Table table(two ? std::vector<std::string>{"<", "here", "there"} : std::vector<std::string>{"<", "here"});
  const auto row = [&](const std::string& name, const auto& text) {
    table.row({name, text(all.here), text(all.there)});
  };
  row("reading the data", [](const train::Estimate& e) { return long_time(e.read); });
  row("compiling", [](const train::Estimate& e) { return long_time(e.compile); });
  row("a step", [](const train::Estimate& e) { return time_text(e.step); });
  row(fmt::format("{} a second", p.unit),
      [](const train::Estimate& e) { return number_text(e.samples_per_second); });
  row(fmt::format("{} a second, loading alone", p.unit),
      [](const train::Estimate& e) { return number_text(e.load_per_second); });
  row("testing", [](const train::Estimate& e) { return long_time(e.test); });
  row("an epoch", [](const train::Estimate& e) { return long_time(e.epoch); });
  row("to the end", [](const train::Estimate& e) { return long_time(e.total); });
  row("peak memory", [](const train::Estimate& e) { return bytes_text(e.memory_bytes); });
  row("of", [](const train::Estimate& e) { return bytes_text(e.machine_bytes); });
  fmt::print("{}\n", table.str());
  fmt::print("  bound by {}\n", all.here.binds);
  if (two) {
    fmt::print("  there by {}\n", all.there.binds);
    const Machine& m = all.described;
    fmt::print(
        "  there: {} cores, {} GFLOP/s fp32, {} GB/s; kernels as near its limits as they are near this "
        "machine's\n",
        m.threads, number_text(m.fp32_gflops), number_text(m.ram().gb_per_s));
  }
}

Action declare_estimate(Command& command) {
  auto a = std::make_shared<EstimateArguments>();
  command.positional("RECIPE", a->recipe, "a recipe, or a run folder")
      .positional("KEY=VALUE", a->overrides, "changes of the recipe", false)
      .option("--cores", a->machine.cores, "of another machine, to estimate for it too")
      .option("--gflops", a->machine.gflops, "its fp32 peak; without it: this machine's, by the core")
      .option("--bandwidth", a->machine.bandwidth,
              "GB/s that a copy in its RAM reads and writes; without it: as here")
      .option("--memory", a->memory, "its memory, e.g. 16GB")
      .flag("--json", a->json, "print one JSON object")
      .footer(
          "Compiles the training, runs some steps on a sample of the data, and says how long it will take "
          "and how much\n"
          "memory. Nothing is trained or written.\n\n"
          "  millrace estimate examples/cifar10.toml\n"
          "  millrace estimate examples/cifar10.toml --cores 16 --gflops 1600 --bandwidth 80 --memory "
          "32GB\n");
  return [a] {
    if (!a->memory.empty()) a->machine.memory = parse_bytes("--memory", a->memory);
    if (a->machine.cores < 0 || a->machine.gflops < 0 || a->machine.bandwidth < 0)
      fail<InputError>("--cores, --gflops and --bandwidth are more than 0");
    const task::Recipe recipe = train::recipe_of(a->recipe, a->overrides);
    const train::Estimates all = train::estimate(recipe, a->machine, {});
    if (!a->json) {
      print_estimates(*a, all);
      return 0;
    }
    std::vector<std::pair<std::string, Json>> fields = {{all.prepared.unit, all.prepared.samples},
                                                        {"steps_per_epoch", all.prepared.steps_per_epoch},
                                                        {"steps", all.prepared.steps},
                                                        {"here", estimate_json(all.here, all.prepared.unit)}};
    if (a->machine.given()) fields.emplace_back("there", estimate_json(all.there, all.prepared.unit));
    print_json(json_object(fields));
    return 0;
  };
}

}  // namespace

MILLRACE_VERB(estimate){"estimate", "say what a training will take: time, memory, what binds",
                        declare_estimate, 100};

}  // namespace millrace::cli
