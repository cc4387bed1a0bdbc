#include <fmt/core.h>

#include "base/format.h"
#include "base/number_text.h"
#include "base/size_text.h"
#include "cli/json.h"
#include "cli/outputs.h"
#include "cli/verbs.h"
#include "train/bad_steps.h"
#include "train/checkpoint.h"
#include "train/control.h"
#include "train/origin.h"
#include "train/run_folder.h"

namespace millrace::cli {
namespace {

struct LineageArguments {
  std::string run;
  bool json = false;
};

/// "xxh3 1a2b… of all 891 samples"
std::string print_text(const data::Fingerprint& print) {
  const std::string of =
      print.read == print.samples ? fmt::format("all {} samples", thousands(print.samples))
      : print.read > 0 ? fmt::format("{} of {} samples", thousands(print.read), thousands(print.samples))
                       : fmt::format("the names of {} samples", thousands(print.samples));
  return fmt::format("xxh3 {} of {}", print.digest, of);
}

std::string command_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_quoted(word);
  return text;
}

/// The numbers that the newest checkpoint has of the last test.
std::vector<std::pair<std::string, double>> numbers_of(const train::Checkpoint& checkpoint) {
  std::vector<std::pair<std::string, double>> numbers;
  for (const auto& [name, value] : checkpoint.sums)
    if (name.starts_with("test/") && !name.ends_with("/low") && !name.ends_with("/high"))
      numbers.emplace_back(name, value);
  return numbers;
}

void print_origin(const train::Origin& origin, bool first) {
  fmt::print("{} {}, after step {}\n", first ? "begun" : "gone on with", origin.time, origin.step);
  fmt::print("  command   {}\n  in        {}\n", command_text(origin.command), origin.folder);
  fmt::print("  program   Millrace {}, xxh3 {}\n", origin.version, origin.program);
  fmt::print("  machine   {}, {} threads, {}\n  seed      {}\n", origin.cpu, origin.threads, origin.system,
             origin.seed);
  for (const auto& [role, print] : origin.data)
    fmt::print("  {:<9} {}\n            {}\n", role, print.source, print_text(print));
}

/// Rollbacks, and of the steps that were skipped the first ones.
void print_bad_steps(std::span<const train::BadStep> steps) {
  constexpr int64_t most = 5;
  int64_t skipped = 0;
  for (const train::BadStep& each : steps)
    if (each.to >= 0 || ++skipped <= most) fmt::print("  {}  ({})\n", train::bad_step_text(each), each.time);
  if (skipped > most) fmt::print("  and {} more steps that were skipped\n", skipped - most);
}

int run_lineage(const LineageArguments& a) {
  const train::RunFolder run = train::RunFolder::open(a.run);
  const std::vector<train::Origin> origins = train::read_origins(run);
  const std::vector<train::Applied> journal = train::read_journal(run.journal());
  const auto loaded = train::load_newest_checkpoint(run.checkpoints());
  const std::vector<train::BadStep> bad_steps = train::read_bad_steps(run.bad_steps());
  if (a.json) {
    std::vector<Json> begun, changes, bad;
    for (const train::BadStep& each : bad_steps)
      bad.push_back(json_object({{"step", Json(each.step)},
                                 {"what", each.what},
                                 {"why", each.why},
                                 {"to", each.to},
                                 {"lr_factor", each.lr_factor},
                                 {"time", each.time}}));
    std::vector<std::pair<std::string, double>> numbers;
    for (const train::Origin& origin : origins) begun.push_back(Json::raw(train::origin_json(origin)));
    for (const train::Applied& each : journal)
      changes.push_back(json_object({{"step", Json(each.step)},
                                     {"key", each.change.key},
                                     {"value", each.change.value_text()},
                                     {"time", each.time}}));
    if (loaded) numbers = numbers_of(loaded->checkpoint);
    print_json(json_object({{"run", Json(run.path().string())},
                            {"recipe", run.recipe().string()},
                            {"checkpoint", loaded ? loaded->path.string() : ""},
                            {"step", loaded ? loaded->checkpoint.step : 0},
                            {"numbers", json_object(numbers)},
                            {"origins", begun},
                            {"changes", changes},
                            {"bad_steps", bad}}));
    return 0;
  }
  fmt::print("{}\n", run.path().string());
  if (loaded) {
    fmt::print("  {}, step {}\n", loaded->path.string(), thousands(loaded->checkpoint.step));
    for (const auto& [name, value] : numbers_of(loaded->checkpoint))
      fmt::print("  {} = {}\n", name, millrace::number_text(value));
  } else {
    fmt::print("  no checkpoint yet\n");
  }
  fmt::print("  recipe: {}\n", run.recipe().string());
  for (const train::Applied& each : journal)
    fmt::print("  from step {} on: {}  ({})\n", each.step + 1, each.change.spoken(), each.time);
  print_bad_steps(bad_steps);
  if (origins.empty())
    fmt::print("  an older Millrace made it, which did not write down where it came from\n");
  for (const train::Origin& origin : origins) print_origin(origin, &origin == &origins.front());
  return 0;
}

Action declare_lineage(Command& command) {
  auto a = std::make_shared<LineageArguments>();
  command.positional("RUN", a->run, "a run folder")
      .flag("--json", a->json, "print one JSON object")
      .footer(
          "From the numbers of a run back to what they hang on: checkpoint, recipe, changes on the way, and "
          "for each time that\n"
          "it was begun or gone on with the command, program, machine, seed and data.\n\n"
          "  millrace lineage runs/letters-1\n");
  return [a] { return run_lineage(*a); };
}

}  // namespace

MILLRACE_VERB(lineage){"lineage", "say where a run comes from: data, seed, command, program, machine",
                       declare_lineage, 76};

}  // namespace millrace::cli
