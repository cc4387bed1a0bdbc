#include <fmt/core.h>

#include <millrace/run.h>

#include "base/format.h"
#include "cli/evaluation_text.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "task/open.h"

namespace millrace::cli {
namespace {

struct CalibrateArguments {
  std::string model, checkpoint;
  task::CalibrateOptions options;
  bool json = false;
};

Json calibrated_json(const task::Calibrated& each, const std::string& method) {
  std::vector<std::pair<std::string, Json>> fields = {{"method", Json(method)}, {"fitted", Json(each.what)}};
  if (!each.output.empty()) fields.insert(fields.begin(), {"output", Json(each.output)});
  fields.emplace_back("targets", each.count);
  fields.emplace_back("before", json_object(metric_fields(each.before)));
  fields.emplace_back("after", json_object(metric_fields(each.after)));
  fields.emplace_back("notes", each.notes);
  return json_object(fields);
}

void print_calibrated(Progress& progress, const task::Calibrated& each) {
  progress.print(fmt::format("{}{}{} (of {})", each.output, each.output.empty() ? "" : ": ", each.what,
                             thousands(each.count)));
  progress.print("before:");
  for (const std::string& line : metric_lines(each.before)) progress.print(line);
  progress.print("after, on the same samples:");
  for (const std::string& line : metric_lines(each.after)) progress.print(line);
  for (const std::string& note : each.notes) progress.print("note: " + note);
}

int run_calibrate(const CalibrateArguments& a) {
  Progress progress;
  const train::Observer observer = measuring_observer(progress, a.json);
  Run run = Run::open(a.model, observer, {}, a.checkpoint);
  if (a.options.data.empty() && !task::has_tests(run.recipe()))
    fail<InputError>(
        "the recipe of {} names no test set: millrace calibrate {} DATA, with labelled samples that were not "
        "trained on",
        a.model, a.model);
  const std::vector<task::Calibrated> results = run.calibrate(a.options);
  if (a.json) {
    std::vector<Json> list;
    for (const task::Calibrated& each : results) list.push_back(calibrated_json(each, a.options.method));
    print_json(json_object({{"data", Json(run.tests(a.options.data).path())}, {"outputs", Json(list)}}));
    return 0;
  }
  for (const task::Calibrated& each : results) print_calibrated(progress, each);
  progress.print(
      fmt::format("Kept in {}: eval, predict and export use it. The samples that it was fitted on cannot say "
                  "how good it is: "
                  "millrace eval {} DATA, with others.",
                  (run.folder() / "calibration.json").string(), a.model));
  return 0;
}

Action declare_calibrate(Command& command) {
  auto a = std::make_shared<CalibrateArguments>();
  command.positional("MODEL", a->model, "a run folder")
      .positional("DATA", a->options.data,
                  "labelled samples that were not trained on, by default what the recipe keeps to test on",
                  false)
      .option(
          "--method", a->options.method,
          "temperature: one number that all logits are divided by; isotonic: a curve of probabilities, from "
          "about 1,000 samples on; threshold: where to decide between two classes, or of each label")
      .option("--metric", a->options.metric,
              "what a threshold is tuned for, f1 by default; of other methods another metric to print")
      .option("--checkpoint", a->checkpoint, checkpoint_doc)
      .flag("--json", a->json, "print one JSON object")
      .footer(
          "Makes probabilities mean what they say, or finds where to decide; the weights stay. A threshold "
          "is "
          "tuned on top of\n"
          "a temperature or curve that is there; these begin anew. Without the run's calibration.json all is "
          "as "
          "it was.\n\n"
          "  millrace calibrate runs/sms-spam-1\n"
          "  millrace calibrate runs/sms-spam-1 validation.tsv --method threshold --metric f1\n");
  return [a] { return run_calibrate(*a); };
}

}  // namespace

MILLRACE_VERB(calibrate){"calibrate", "fit probabilities and thresholds on samples that were not trained on",
                         declare_calibrate, 75};

}  // namespace millrace::cli
