// Measuring all baselines, keeping what was found, and a network beside it.
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/contains.h"
#include "base/file.h"
#include "base/format.h"
#include "base/seconds_since.h"
#include "baseline/context.h"
#include "baseline/neighbours.h"
#include "data/tools/fingerprint.h"
#include "task/evaluate.h"
#include "task/model.h"

namespace millrace::baseline {

#include "generated/baselines.inc"

Registry<BaselineKind>& baseline_kinds() {
  static Registry<BaselineKind> kinds("baseline", {MILLRACE_FOUND_BASELINES});
  return kinds;
}

namespace {

constexpr int report_version = 1;

nlohmann::json number_json(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}
double number_at(const nlohmann::json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_number() ? at->get<double>() : NAN;
}

const Result* find_result(const Report& report, const std::string& name) {
  for (const Result& each : report.results)
    if (each.name == name) return &each;
  return nullptr;
}

const eval::Measured* find_metric(const std::vector<eval::Measured>& list, const std::string& name) {
  for (const eval::Measured& each : list)
    if (each.name == name && std::isfinite(each.value)) return &each;
  return nullptr;
}

}  // namespace

std::string progress_name(const task::Task& task) {
  if (task.outputs.size() != 1 || task.outputs[0]->from()) return "";
  return task.outputs[0]->prefix() + task.outputs[0]->progress_metric().name;
}

Report measure(const task::Recipe& recipe, const Options& options) {
  for (const std::string& name : options.only) (void)baseline_kinds().at(name);
  Context context(recipe, options);
  Report report;
  report.train_digest = data::fingerprint(*context.samples(false)).digest;
  report.test_digest = data::fingerprint(*context.samples(true)).digest;
  report.data = context.tests().feed->path();
  report.rows = context.samples(true)->count();
  report.metrics = context.task().metrics();
  report.progress = progress_name(context.task());
  for (const BaselineKind* kind : baseline_kinds().all()) {
    if (!options.only.empty() && !contains(options.only, kind->name)) continue;
    if (options.stop()) break;
    const auto begin = std::chrono::steady_clock::now();
    context.progress(kind->name, 0, 1);
    Result result = kind->run(context);
    result.name = kind->name;
    result.seconds = seconds_since(begin);
    report.results.push_back(std::move(result));
  }
  if (options.only.empty() && !options.stop()) report.neighbours = look_at_neighbours(context);
  return report;
}

std::filesystem::path report_path(const std::filesystem::path& recipe) {
  if (std::filesystem::is_directory(recipe)) return recipe / "baseline.json";
  std::filesystem::path path = recipe;
  return path.replace_extension("baseline.json");
}

std::string report_json(const Report& report) {
  nlohmann::ordered_json json{{"version", report_version},   {"train", report.train_digest},
                              {"test", report.test_digest},  {"data", report.data},
                              {"rows", report.rows},         {"metrics", report.metrics},
                              {"progress", report.progress}, {"baselines", nlohmann::ordered_json::array()}};
  for (const Result& each : report.results) {
    nlohmann::ordered_json one{{"name", each.name},
                               {"note", each.note},
                               {"seconds", each.seconds},
                               {"train", number_json(each.train)},
                               {"test", nlohmann::ordered_json::object()}};
    for (const eval::Measured& m : each.metrics)
      one["test"][m.name] = {
          {"value", number_json(m.value)}, {"low", number_json(m.low)}, {"high", number_json(m.high)}};
    json["baselines"].push_back(std::move(one));
  }
  if (const auto& found = report.neighbours)
    json["neighbours"] = {{"looked", found->looked},
                          {"near", found->near},
                          {"duplicates", found->duplicates},
                          {"disagreement", found->disagreement},
                          {"chance", found->chance}};
  return json.dump(1);
}

std::optional<Report> read_report(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  try {
    const auto json = nlohmann::ordered_json::parse(read_text(path));
    if (json.at("version").get<int>() != report_version) return std::nullopt;
    Report report;
    json.at("train").get_to(report.train_digest);
    json.at("test").get_to(report.test_digest);
    json.at("data").get_to(report.data);
    json.at("rows").get_to(report.rows);
    json.at("metrics").get_to(report.metrics);
    json.at("progress").get_to(report.progress);
    for (const auto& each : json.at("baselines")) {
      Result result{.name = each.at("name").get<std::string>(),
                    .note = each.at("note").get<std::string>(),
                    .train = number_at(each, "train"),
                    .seconds = each.at("seconds").get<double>()};
      for (const auto& [name, value] : each.at("test").items())
        result.metrics.push_back(
            {name, number_at(value, "value"), number_at(value, "low"), number_at(value, "high")});
      report.results.push_back(std::move(result));
    }
    if (json.contains("neighbours")) {
      const auto& found = json.at("neighbours");
      report.neighbours = Neighbours{found.at("looked").get<int64_t>(), found.at("near").get<int64_t>(),
                                     found.at("disagreement").get<double>(), found.at("chance").get<double>(),
                                     found.at("duplicates").get<bool>()};
    }
    return report;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::vector<std::string> compare(const Report& report, const std::vector<eval::Measured>& network,
                                 double train) {
  std::vector<std::string> lines;
  int64_t won = 0;
  for (const eval::Measured& own : network) {
    const bool higher = task::metric_of(own.name).higher_is_better;
    const Result* best = nullptr;
    double best_value = 0;
    // How often what occurs is well calibrated, and tells nothing.
    const bool calibration = own.name.ends_with("ece");
    for (const Result& each : report.results) {
      const BaselineKind* const kind = baseline_kinds().find(each.name);
      if (calibration && kind && kind->same_for_all) continue;
      const eval::Measured* const m = find_metric(each.metrics, own.name);
      if (!m || (best && !(higher ? m->value > best_value : m->value < best_value))) continue;
      best = &each;
      best_value = m->value;
    }
    if (!best || !std::isfinite(own.value)) continue;
    if (higher ? own.value > best_value : own.value < best_value) {
      ++won;
      if (best_value >= own.low && best_value <= own.high)
        lines.push_back(fmt::format(
            "baseline: the network is no more than chance above {} in {}: {} against {}, which is "
            "within its 95 % interval",
            best->name, own.name, task::metric_text(own.name, own.value),
            task::metric_text(own.name, best_value)));
    } else {
      lines.push_back(fmt::format("baseline: the network {} {} in {}: {} against {}",
                                  own.value == best_value ? "is no better than" : "loses to", best->name,
                                  own.name, task::metric_text(own.name, own.value),
                                  task::metric_text(own.name, best_value)));
    }
  }
  if (lines.empty() && won > 0) lines.emplace_back("baseline: the network beats all of them");
  if (std::string line = pattern(report, "the network", train); !line.empty())
    lines.push_back("baseline: " + line);
  return lines;
}

std::string pattern(const Report& report, const std::string& strong, double strong_train) {
  constexpr double far = 0.1, much = 0.5;
  const Result* const weak = find_result(report, "linear");
  if (!weak || !std::isfinite(weak->train) || !std::isfinite(strong_train) || !report.neighbours) return "";
  const eval::MetricKind& kind = task::metric_of(report.progress);
  const bool above =
      kind.higher_is_better ? strong_train - weak->train > far : strong_train < (1 - 2 * far) * weak->train;
  if (!above || report.neighbours->ratio() < much) return "";
  return fmt::format(
      "{} is far above linear on the rows that both learnt from ({} {} against {}), and {}: what it has "
      "learnt there may be noise by heart; look at the labels, and at its metrics on other rows",
      strong, report.progress, task::metric_text(report.progress, strong_train),
      task::metric_text(report.progress, weak->train), neighbours_text(*report.neighbours));
}

}  // namespace millrace::baseline
