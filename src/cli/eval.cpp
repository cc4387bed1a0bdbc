#include <filesystem>
#include <fmt/core.h>

#include <millrace/run.h>

#include "base/file.h"
#include "base/format.h"
#include "base/words.h"
#include "cli/evaluation_text.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "eval/metric.h"
#include "task/open.h"

namespace millrace::cli {
namespace {

struct EvalArguments {
  std::string model;
  std::vector<std::string> words;  // what to measure on, and changes
  std::string checkpoint, references;
  bool json = false;
};

/// "eval.metrics=[accuracy]", not a path with such a sign in it.
bool is_change(const std::string& word) {
  const size_t end = word.find('=');
  std::error_code ignored;
  return end != std::string::npos && word.find('.') < end && word.find('/') > end &&
         !std::filesystem::exists(word, ignored);
}

Json evaluation_json(const task::Evaluation& result, const std::vector<std::string>& calibrations) {
  std::vector<std::pair<std::string, Json>> fields = {{"data", result.data}, {"targets", result.count}};
  const auto metrics = metric_fields(result.metrics);
  fields.insert(fields.end(), metrics.begin(), metrics.end());
  if (!result.classes.empty()) {
    std::vector<Json> reports;
    for (const task::ClassReport& report : result.classes) reports.push_back(class_report_json(report));
    fields.emplace_back("classes", reports);
  }
  if (!calibrations.empty()) fields.emplace_back("calibrated", calibrations);
  fields.emplace_back("seconds", result.seconds);
  return json_object(fields);
}

/// Texts of a file against those of another, line by line.
int eval_texts(const EvalArguments& a) {
  if (!a.words.empty() || !a.checkpoint.empty())
    fail<InputError>("--references compares two files of texts, line by line: nothing else goes with it");
  const std::vector<std::string> generated = lines_in(read_text(a.model)),
                                 references = lines_in(read_text(a.references));
  if (generated.size() != references.size() || references.empty())
    fail<InputError>("{} has {} lines, and {} {}: each line is a text, and they belong together", a.model,
                     generated.size(), a.references, references.size());
  std::vector<std::string> names;
  std::string output;  // the kind that metrics of texts apply to
  for (const eval::MetricKind* kind : eval::metric_kinds().all())
    if (kind->texts) {
      names.push_back(kind->name);
      output = kind->outputs.front();
    }
  eval::Measurement measurement(names, output);
  eval::Judged judged;
  judged.rows = static_cast<int64_t>(generated.size());
  judged.generated = generated;
  judged.references = references;
  measurement.update(judged);
  const task::Evaluation result{measurement.finalize(), judged.rows, 0, a.model, "texts", {}};
  if (a.json) {
    print_json(evaluation_json(result, {}));
    return 0;
  }
  fmt::print("{}: {} texts\n", a.model, thousands(judged.rows));
  for (const std::string& line : metric_lines(result.metrics)) fmt::print("{}\n", line);
  return 0;
}

int run_eval(const EvalArguments& a) {
  if (!a.references.empty()) return eval_texts(a);
  Progress progress;
  const train::Observer observer = measuring_observer(progress, a.json);
  std::vector<std::string> changes;
  std::string data;
  for (const std::string& word : a.words) {
    if (is_change(word)) {
      changes.push_back(word);
    } else {
      if (!data.empty()) fail<InputError>("'{}' and '{}': one set is measured at a time", data, word);
      data = word;
    }
  }
  Run run = Run::open(a.model, observer, changes, a.checkpoint);
  if (data.empty() && !task::has_tests(run.recipe()))
    fail<InputError>("the recipe of {} names no test set: millrace eval {} DATA", a.model, a.model);
  const task::Evaluation result = run.evaluate(data);
  if (a.json) {
    print_json(evaluation_json(result, run.calibrations()));
    return 0;
  }
  progress.print(fmt::format("{}: {} {} in {:.1f} s", result.data, thousands(result.count), result.unit,
                             result.seconds));
  for (const std::string& line : run.calibrations()) progress.print("calibrated: " + line);
  for (const std::string& line : metric_lines(result.metrics)) progress.print(line);
  for (const task::ClassReport& report : result.classes)
    if (const std::string table = class_report_text(report); !table.empty()) progress.print(table);
  return 0;
}

Action declare_eval(Command& command) {
  auto a = std::make_shared<EvalArguments>();
  command.positional("MODEL", a->model, "a run folder; with --references a file of texts, one a line")
      .positional(
          "DATA", a->words,
          "a labelled set, by default what the recipe keeps to test on; and KEY=VALUE: changes of the "
          "recipe's [eval], or input.tta (test-time augmentation)",
          false)
      .option("--checkpoint", a->checkpoint, checkpoint_doc)
      .option(
          "--references", a->references,
          "compare texts of a file with these, line by line: BLEU, chrF, ROUGE, word and character errors")
      .flag("--json", a->json, "print one JSON object")
      .footer(
          "Prints the recipe's metrics (eval.metrics), each with its 95 % interval, and of up to 20 classes "
          "or "
          "labels what is\n"
          "said of each and which are taken for which.\n\n"
          "  millrace eval runs/letters-1\n"
          "  millrace eval runs/cifar10-1 ${MILLRACE_DATA}/cifar10/test.tar input.tta=none --json\n"
          "  millrace eval translations.txt --references references.txt\n");
  return [a] { return run_eval(*a); };
}

}  // namespace

MILLRACE_VERB(eval){"eval", "measure a trained model on a labelled set", declare_eval, 70};

}  // namespace millrace::cli
