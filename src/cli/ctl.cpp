// Looking at a training while it runs, and changing it.
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "cli/json.h"
#include "cli/verbs.h"
#include "train/control.h"
#include "train/status.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct CtlArguments {
  std::string run;
  std::vector<std::string> changes;
  double wait = 10;
  bool json = false;
};

/// Where a run stands, by its metrics.
struct Standing {
  bool running = false, finished = false, any = false;
  int64_t step = 0;
  double epoch = 0, loss = 0, lr = 0;
  std::vector<train::NamedValue> metrics;  // of the training's outputs, of that step
};

/// The last step that metrics.jsonl tells of: its end is enough, however long it is.
Standing standing_of(const train::RunFolder& run) {
  Standing s;
  s.running = run.in_use();
  s.finished = !s.running && fs::exists(run.model());
  std::ifstream file(run.metrics(), std::ios::binary | std::ios::ate);
  if (!file) return s;
  constexpr std::streamoff most = 1 << 16;
  const std::streamoff size = file.tellg(), from = std::max<std::streamoff>(0, size - most);
  file.seekg(from);
  std::string line;
  while (std::getline(file, line)) {
    const auto metrics = nlohmann::ordered_json::parse(line, nullptr, false);
    if (!metrics.is_object() || !metrics.contains("lr")) continue;
    const auto number = [&](const char* name) {
      const auto at = metrics.find(name);
      return at != metrics.end() && at->is_number() ? at->get<double>() : 0.0;
    };
    s.any = true;
    s.step = static_cast<int64_t>(number("step"));
    s.epoch = number("epoch");
    s.loss = number("loss");
    s.lr = number("lr");
    // A step's line: what leads to it, the loss, the outputs' metrics, the rate, and more.
    s.metrics.clear();
    bool behind_loss = false;
    for (const auto& [name, value] : metrics.items()) {
      if (name == "lr") break;
      if (behind_loss && value.is_number()) s.metrics.emplace_back(name, value.get<double>());
      behind_loss = behind_loss || name == "loss";
    }
  }
  return s;
}

int show_standing(const CtlArguments& a, const train::RunFolder& run) {
  const Standing s = standing_of(run);
  const auto journal = train::read_journal(run.journal());
  const char* state = s.running ? "training" : s.finished ? "finished" : "stopped";
  if (a.json) {
    std::vector<Json> entries;
    for (const train::Applied& entry : journal)
      entries.push_back(json_object(
          {{"step", Json(entry.step)},
           {"key", entry.change.key},
           {"value", std::visit([](const auto& value) { return Json(value); }, entry.change.value)},
           {"time", entry.time}}));
    std::vector<std::pair<std::string, Json>> fields = {{"run", run.path().string()},
                                                        {"state", state},
                                                        {"step", s.step},
                                                        {"epoch", s.epoch},
                                                        {"loss", s.loss}};
    for (const auto& [name, value] : s.metrics) fields.emplace_back(name, value);
    fields.emplace_back("lr", s.lr);
    fields.emplace_back("journal", entries);
    print_json(json_object(fields));
    return 0;
  }
  fmt::print("{}: {}", run.path().string(), state);
  if (s.any)
    fmt::print(", step {}  epoch {:.4g}  {}  lr {:.4g}\n", s.step, s.epoch,
               train::progress_text(s.loss, s.metrics), s.lr);
  else
    fmt::print(", no step done yet\n");
  for (const train::Applied& entry : journal)
    fmt::print("  from step {} on: {}  ({})\n", entry.step + 1, entry.change.spoken(), entry.time);
  return 0;
}

int run_ctl(const CtlArguments& a) {
  const train::RunFolder run = train::RunFolder::open(a.run);
  if (a.changes.empty()) return show_standing(a, run);
  const std::vector<train::Change> changes = train::parse_changes(a.changes);
  const int64_t step = train::request_changes(run, changes, a.wait);
  if (a.json) {
    print_json(json_object({{"run", Json(run.path().string())}, {"step", step}}));
    return 0;
  }
  for (const train::Change& change : changes)
    fmt::print("{}: from step {} on {}\n", run.path().string(), step + 1, change.spoken());
  return 0;
}

Action declare_ctl(Command& command) {
  auto a = std::make_shared<CtlArguments>();
  std::string keys;
  for (const std::string& key : train::control_keys()) keys += "\n  " + key;
  command.positional("RUN", a->run, "a run folder in which a training runs")
      .positional("KEY=VALUE", a->changes, "what to change; without: say where the run stands", false)
      .option("--wait", a->wait, "seconds until the training must have taken it")
      .flag("--json", a->json, "print one JSON object")
      .footer(
          "  millrace ctl runs/cifar10-1\n"
          "  millrace ctl runs/cifar10-1 train.lr_scale=0.5 train.epochs=20\n\n"
          "Changes are made between two steps and noted in RUN/control.jsonl, which --resume replays: "
          "docs/control.md.\n"
          "Keys that can change:" +
          keys + "\n");
  return [a] {
    if (!(a->wait > 0 && a->wait <= 1e6)) fail<InputError>("--wait is more than 0, not {}", a->wait);
    return run_ctl(*a);
  };
}

}  // namespace

MILLRACE_VERB(ctl){"ctl", "say where a training stands, and change it while it runs", declare_ctl, 60};

}  // namespace millrace::cli
