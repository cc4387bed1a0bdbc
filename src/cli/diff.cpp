#include <cmath>
#include <fmt/core.h>

#include "base/format.h"
#include "base/number_text.h"
#include "base/size_text.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "train/compare_runs.h"

namespace millrace::cli {
namespace {

struct DiffArguments {
  std::vector<std::string> runs;
  std::string data;
  bool json = false;
};

/// "+0.31" of shares in points, of others in their own unit.
std::string signed_text(double value, bool share) {
  if (!std::isfinite(value)) return "?";
  const std::string text = share ? fmt::format("{:.2f}", 100 * value) : millrace::number_text(value);
  return text.starts_with('-') ? text : "+" + text;
}

std::string value_text(double value, bool share) {
  return share ? fmt::format("{:.2f} %", 100 * value) : millrace::number_text(value);
}

std::string interval_text(const eval::Difference& each, bool share) {
  if (!std::isfinite(each.low)) return "too few rows to tell";
  return fmt::format("{} to {}", signed_text(each.low, share), signed_text(each.high, share));
}

/// What the numbers mean, for who does not want to read them.
std::string verdict_of(const train::MetricDifference& metric) {
  const eval::Difference& judge = metric.seeds ? *metric.seeds : metric.rows;
  if (judge.difference() == 0) return "the same";
  if (!std::isfinite(judge.low)) return "unknown";
  // Beside other seeds and other rows it must stand.
  const bool seen = metric.seeds ? metric.seeds->significant() : metric.rows.significant();
  if (!seen) {
    if (metric.seeds && metric.seeds->more > 0)
      return fmt::format("noise; {} more {} would show a difference of this size", metric.seeds->more,
                         metric.seeds->more == 1 ? "seed" : "seeds");
    return "noise";
  }
  const bool better = (judge.difference() > 0) == metric.higher_is_better;
  const std::string word = better ? "better" : "worse";
  if (!metric.seeds) return word + " on these rows; other seeds may differ (train --seeds)";
  return metric.rows.significant() ? word : word + " by seeds; other rows may differ";
}

void print_keys(const std::string& title, const std::vector<train::KeyDifference>& keys,
                const std::string& first, const std::string& second) {
  if (keys.empty()) return;
  Table table({"<" + title, "<" + first, "<" + second});
  const auto shown = [](const std::string& text) { return text.empty() ? "-" : text; };
  for (const train::KeyDifference& each : keys) table.row({each.key, shown(each.first), shown(each.second)});
  fmt::print("{}", table.str());
}

void print_metrics(const std::vector<train::MetricDifference>& metrics, const std::string& first,
                   const std::string& second) {
  Table table({"<metric", ">" + first, ">" + second, "difference", "<95 % by rows", "<95 % by seeds", "<"});
  for (const train::MetricDifference& each : metrics)
    table.row({each.name, value_text(each.rows.first, each.share), value_text(each.rows.second, each.share),
               signed_text(each.rows.difference(), each.share), interval_text(each.rows, each.share),
               each.seeds ? interval_text(*each.seeds, each.share) : "-", verdict_of(each)});
  fmt::print("{}", table.str());
  for (const train::MetricDifference& each : metrics)
    if (each.answers)
      fmt::print("  {}: {} rows only the first has right, {} only the second (McNemar's p = {:.3g})\n",
                 each.name, each.answers->only_first, each.answers->only_second, each.answers->p);
}

Json keys_json(const std::vector<train::KeyDifference>& keys) {
  std::vector<Json> list;
  for (const train::KeyDifference& each : keys)
    list.push_back(json_object({{"key", Json(each.key)}, {"first", each.first}, {"second", each.second}}));
  return list;
}

Json metric_json(const train::MetricDifference& each) {
  std::vector<std::pair<std::string, Json>> fields = {
      {"metric", Json(each.name)},
      {"first", each.rows.first},
      {"second", each.rows.second},
      {"difference", each.rows.difference()},
      {"rows", std::vector<Json>{each.rows.low, each.rows.high}}};
  if (each.answers)
    fields.emplace_back("mcnemar", json_object({{"only_first", Json(each.answers->only_first)},
                                                {"only_second", each.answers->only_second},
                                                {"p", each.answers->p}}));
  if (each.seeds)
    fields.emplace_back("seeds",
                        json_object({{"interval", std::vector<Json>{each.seeds->low, each.seeds->high}},
                                     {"p", Json(each.seeds->p)},
                                     {"more", each.seeds->more}}));
  fields.emplace_back("verdict", verdict_of(each));
  return json_object(fields);
}

/// Why the runs may say little yet, a line each.
std::vector<std::string> doubts_of(const std::vector<train::Side>& sides) {
  std::vector<std::string> lines;
  for (const train::Side& side : sides)
    for (std::string& line : train::unfinished_runs(side.runs)) lines.push_back(std::move(line));
  return lines;
}

int run_diff(const DiffArguments& a) {
  Progress progress(stderr);
  const train::Observer observer = measuring_observer(progress, false);
  std::vector<train::Side> sides;
  for (const std::string& path : a.runs) sides.push_back(train::side_of(path));
  if (sides.size() < 2) fail<InputError>("diff compares two runs or more: millrace diff RUN RUN");
  std::vector<train::MeasuredSide> measured;
  for (const train::Side& side : sides) measured.emplace_back(side, a.data, observer);
  const std::vector<std::string> doubts = doubts_of(sides);
  std::vector<Json> pairs;
  for (size_t i = 1; i < sides.size(); ++i) {
    const auto recipe = train::recipe_differences(sides[0], sides[i]);
    const auto origin = train::origin_differences(sides[0], sides[i]);
    const auto metrics = train::MeasuredSide::compare(
        measured[0], measured[i],
        [&](int64_t done, int64_t all) { progress.count("comparing: ", done, all, "metrics"); });
    progress.finish();
    if (a.json) {
      std::vector<Json> list;
      for (const auto& each : metrics) list.push_back(metric_json(each));
      pairs.push_back(json_object({{"first", Json(sides[0].name)},
                                   {"second", sides[i].name},
                                   {"recipe", keys_json(recipe)},
                                   {"origin", keys_json(origin)},
                                   {"metrics", list}}));
      continue;
    }
    fmt::print("{}{} beside {}, {} rows of {}\n", i > 1 ? "\n" : "", sides[i].name, sides[0].name,
               thousands(measured[i].rows()), measured[i].data());
    if (recipe.empty()) fmt::print("  the same recipe\n");
    print_keys("recipe", recipe, sides[0].name, sides[i].name);
    print_keys("made by", origin, sides[0].name, sides[i].name);
    print_metrics(metrics, sides[0].name, sides[i].name);
  }
  if (a.json) {
    print_json(json_object({{"pairs", Json(pairs)}, {"doubts", doubts}}));
    return 0;
  }
  for (const std::string& line : doubts) fmt::print("  note: {}\n", line);
  return 0;
}

Action declare_diff(Command& command) {
  auto a = std::make_shared<DiffArguments>();
  command
      .positional(
          "RUN", a->runs,
          "run folders, or folders of several seeds (train --seeds); the others are compared with the "
          "first")
      .option("--data", a->data, "what to measure on; by default what the recipes test on")
      .flag("--json", a->json, "print one JSON object")
      .footer(
          "Says what differs between runs (recipe, data, program, machine), and whether one is better: the "
          "models are measured\n"
          "on the same rows, and each difference has its 95 % interval, by rows (paired bootstrap, McNemar's "
          "test) and by seeds\n"
          "(Welch's t-test). docs/diff.md explains them.\n\n"
          "  millrace diff runs/letters-1 runs/letters-2\n"
          "  millrace diff runs/wide-1 runs/narrow-1 --data data/new.csv --json\n");
  return [a] { return run_diff(*a); };
}

}  // namespace

MILLRACE_VERB(diff){"diff", "compare runs: what differs, and is one better or is it noise", declare_diff, 75};

}  // namespace millrace::cli
