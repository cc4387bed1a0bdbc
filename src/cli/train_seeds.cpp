// Several trainings of one recipe that differ in their seed.
#include <filesystem>
#include <fmt/core.h>

#include "base/format.h"
#include "base/number_text.h"
#include "cli/json.h"
#include "cli/outputs.h"
#include "cli/train.h"
#include "eval/compare.h"
#include "eval/metric.h"
#include "task/evaluate.h"
#include "train/compare_runs.h"

namespace millrace::cli {

namespace fs = std::filesystem;

namespace {

/// Of each metric its mean and standard deviation over the seeds.
std::vector<std::pair<std::string, eval::Spread>> spreads_of(
    const std::vector<std::vector<eval::Measured>>& tests) {
  std::vector<std::pair<std::string, eval::Spread>> spreads;
  if (tests.empty()) return spreads;
  for (size_t i = 0; i < tests.front().size(); ++i) {
    std::vector<double> values;
    for (const auto& test : tests) values.push_back(test.at(i).value);
    spreads.emplace_back(tests.front()[i].name, eval::spread_of(values));
  }
  return spreads;
}

void print_seeds(const TrainArguments& a, const fs::path& folder,
                 const std::vector<std::vector<eval::Measured>>& tests) {
  const auto spreads = spreads_of(tests);
  const std::vector<std::string> doubts = train::unfinished_runs(train::side_of(folder).runs);
  if (a.json) {
    std::vector<std::pair<std::string, Json>> fields;
    for (const auto& [name, spread] : spreads)
      fields.emplace_back(name,
                          json_object({{"mean", Json(spread.mean)}, {"deviation", Json(spread.deviation)}}));
    print_json(json_object({{"folder", Json(folder.string())},
                            {"seeds", static_cast<int64_t>(tests.size())},
                            {"test", json_object(fields)},
                            {"unfinished", doubts}}));
    return;
  }
  for (const auto& [name, spread] : spreads) {
    const bool share = task::metric_of(name).share;
    const double unit = share ? 100 : 1;
    fmt::print("  {:<14} {} ± {}{} over {} seeds\n", name, millrace::number_text(unit * spread.mean),
               millrace::number_text(unit * spread.deviation, unit * spread.mean), share ? " %" : "",
               tests.size());
  }
  for (const std::string& line : doubts) fmt::print("  note: {}\n", line);
  if (!doubts.empty())
    fmt::print("  a comparison of such runs is one of how far they came: train longer (train.epochs)\n");
  fmt::print("done: {0}\n  millrace diff {0} ANOTHER\n", shell_quoted(folder.string()));
}

}  // namespace

int train_seeds(const TrainArguments& a) {
  if (*a.seeds < 2 || *a.seeds > 1000) fail<InputError>("--seeds is from 2 to 1000, not {}", *a.seeds);
  if (fs::is_directory(a.recipe))
    fail<InputError>("{} is a folder: --seeds takes a recipe; to go on, add --resume and --out {}", a.recipe,
                     a.recipe);
  const std::string name = fs::path(a.recipe).stem().string();
  const int newest = train::newest_run(name);
  if (a.resume && a.out.empty() && newest == 0)
    fail<InputError>("there is no run of {} in runs/ to go on with; name it with --out FOLDER", a.recipe);
  const fs::path folder =
      a.out.empty() ? train::run_path(name, a.resume ? newest : newest + 1) : fs::path(a.out);
  std::error_code ignored;
  if (fs::exists(folder / "recipe.toml", ignored))
    fail<InputError>("{} is a run of one seed; choose another folder with --out", folder.string());
  if (!a.resume && fs::exists(folder / "seed-1", ignored))
    fail<InputError>("{} holds seeds already: --resume goes on with them", folder.string());
  const int64_t first = train::recipe_of(a.recipe, a.overrides).train.seed;
  std::vector<std::vector<eval::Measured>> tests;
  for (int64_t i = 0; i < *a.seeds; ++i) {
    TrainArguments one = a;
    one.out = (folder / fmt::format("seed-{}", i + 1)).string();
    one.resume = fs::exists(fs::path(one.out) / "recipe.toml", ignored);
    one.overrides.clear();
    one.no_check = a.no_check || i > 0;  // of the same data it would say the same
    if (!one.resume) {
      one.overrides = a.overrides;
      one.overrides.push_back(fmt::format("train.seed={}", first + i));
    } else {
      one.recipe = one.out;
    }
    const Trained trained = train_once(one);
    if (!trained.outcome.finished) {
      std::string changes;  // of seeds that are yet to begin
      for (const std::string& change : a.overrides) changes += " " + shell_quoted(change);
      fmt::print(
          "stopped in seed {} of {}, everything is saved; this goes on:\n  millrace train {}{} --seeds {} "
          "--resume --out {}\n",
          i + 1, *a.seeds, shell_quoted(a.recipe), changes, *a.seeds, shell_quoted(folder.string()));
      return 130;
    }
    tests.push_back(trained.outcome.test);
  }
  print_seeds(a, folder, tests);
  return 0;
}

}  // namespace millrace::cli
