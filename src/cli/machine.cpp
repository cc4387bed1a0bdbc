// This machine's measured limits.
#include "runtime/machine.h"

#include <fmt/core.h>

#include "cli/json.h"
#include "cli/verbs.h"

namespace millrace::cli {
namespace {

std::string level_size_text(int64_t bytes) {
  const double mb = static_cast<double>(bytes) / 1e6;
  return mb < 1000 ? fmt::format("{:.1f} MB", mb) : fmt::format("{:.1f} GB", mb / 1000);
}

void print_machine(const Machine& m) {
  const auto row = [](const std::string& name, const std::string& value, const std::string& note = "") {
    fmt::print("  {:<22} {:>14}{}\n", name, value, note.empty() ? "" : "   " + note);
  };
  fmt::print("{}, {} thread{}, {}\n", m.cpu, m.threads, m.threads == 1 ? "" : "s", m.instructions);
  row("peak fp32", fmt::format("{:.0f} GFLOP/s", m.fp32_gflops), "multiply-adds on registers");
  if (m.bf16_gflops > 0)
    row("peak bf16", fmt::format("{:.0f} GFLOP/s", m.bf16_gflops));
  else
    row("peak bf16", "none", "no units for it: steps in bf16 compute in fp32");
  row("matrix product fp32", fmt::format("{:.0f} GFLOP/s", m.matmul_fp32_gflops), "1,536 × 1,536 × 1,536");
  row("matrix product bf16", fmt::format("{:.0f} GFLOP/s", m.matmul_bf16_gflops));
  const auto tiles = [&](const std::string& name, const TileRates& rates, const char* unit) {
    if (rates.registers == 0) return;
    row("tiles " + name, fmt::format("{:.0f} {}", rates.registers, unit),
        fmt::format("on registers; {:.0f} fed from L1, {:.0f} from L2", rates.l1, rates.l2));
  };
  tiles("bf16", m.bf16_tiles, "GFLOP/s");
  tiles("int8", m.int8_tiles, "GOP/s");
  for (const MemoryLevel& level : m.levels)
    row("copy in " + level.name, fmt::format("{:.1f} GB/s", level.gb_per_s),
        "of " + level_size_text(level.bytes) + "; bytes read + written");
  row("launch", fmt::format("{:.1f} µs", 1e6 * m.launch_seconds),
      "an empty loop that every thread takes part in");
  if (m.disturbed)
    fmt::print(
        "  Something else ran meanwhile: these figures are too low, and are measured again when next "
        "needed.\n");
}

Json machine_json(const Machine& m) {
  std::vector<Json> levels;
  for (const MemoryLevel& level : m.levels)
    levels.push_back(
        json_object({{"name", Json(level.name)}, {"bytes", level.bytes}, {"gb_per_s", level.gb_per_s}}));
  const auto tiles = [](const TileRates& rates) {
    if (rates.registers == 0) return Json::raw("null");
    return json_object({{"registers", Json(rates.registers)}, {"L1", rates.l1}, {"L2", rates.l2}});
  };
  return json_object({{"cpu", m.cpu},
                      {"threads", m.threads},
                      {"instructions", m.instructions},
                      {"fp32_gflops", m.fp32_gflops},
                      {"bf16_gflops", m.bf16_gflops},
                      {"matmul_fp32_gflops", m.matmul_fp32_gflops},
                      {"matmul_bf16_gflops", m.matmul_bf16_gflops},
                      {"bf16_tiles", tiles(m.bf16_tiles)},
                      {"int8_tiles", tiles(m.int8_tiles)},
                      {"memory_gb_per_s", m.ram().gb_per_s},
                      {"levels", levels},
                      {"launch_seconds", m.launch_seconds},
                      {"measured", m.measured},
                      {"disturbed", m.disturbed}});
}

Action declare_machine(Command& command) {
  struct Arguments {
    bool json = false, refresh = false;
  };
  auto a = std::make_shared<Arguments>();
  command.flag("--refresh", a->refresh, "measure again, though figures of this CPU are kept")
      .flag("--json", a->json, "print one JSON object")
      .footer(
          "Measures for a few seconds what this machine gives with all threads, and keeps the figures for "
          "`millrace profile`\n"
          "and `millrace estimate`. Nothing else should run meanwhile.\n");
  return [a] {
    const bool known = !a->refresh && kept_machine();
    Machine machine;
    if (a->refresh) {
      machine = measure_machine();
      keep_machine(machine);
    } else {
      machine = this_machine();
    }
    if (a->json) {
      print_json(machine_json(machine));
      return 0;
    }
    print_machine(machine);
    if (const auto path = machine_file())
      fmt::print("{} {} in {}{}\n", known ? "measured on" : "kept since", machine.measured, path->string(),
                 known ? "; --refresh measures again" : "");
    return 0;
  };
}

}  // namespace

MILLRACE_VERB(machine){"machine", "measure this machine's limits", declare_machine, 140};

}  // namespace millrace::cli
