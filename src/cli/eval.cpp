#include <cmath>
#include <fmt/core.h>
#include <set>

#include "base/format.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "eval/metric.h"
#include "train/arrays.h"
#include "train/datasets.h"
#include "train/evaluate.h"
#include "train/quarantine.h"
#include "train/run_folder.h"
#include "train/texts.h"

namespace millrace::cli {
namespace {

struct Arguments {
  std::string model, data, tta;
  bool json = false;
};

/// "  accuracy      97.31 %  (95 % interval 96.97 to 97.62 %)"
std::string metric_line(const eval::Measured& metric) {
  const bool share = eval::metric_kinds().at(metric.name).share;
  const double scale = share ? 100 : 1;
  const int digits = share ? 2 : 4;
  const char* const unit = share ? " %" : "";
  std::string line = fmt::format("  {:<14} {:.{}f}{}", metric.name, scale * metric.value, digits, unit);
  if (std::isfinite(metric.low) && std::isfinite(metric.high))
    line += fmt::format("  (95 % interval {:.{}f} to {:.{}f}{})", scale * metric.low, digits,
                        scale * metric.high, digits, unit);
  return line;
}

int run(const Arguments& a) {
  Progress progress;
  std::vector<std::string> warnings;
  train::Session session = train::load_session(a.model, warnings);
  const train::Recipe& recipe = session.recipe;
  const std::string path = a.data.empty() ? recipe.data.test : a.data;
  if (path.empty() && recipe.data.test_share == 0 && recipe.data.test_where.empty())
    fail<InputError>("the recipe of {} names no test set: millrace eval {} DATA", a.model, a.model);
  const auto busy = [&](const std::string& what, int64_t done, int64_t total) {
    if (!a.json && progress.due())
      progress.update(fmt::format("{}: {} of {}", what, thousands(done), thousands(total)));
  };
  const bool texts = !recipe.data.tokenizer.empty();
  if ((texts || train::has_arrays(recipe)) && !a.tta.empty() && a.tta != "none")
    fail<InputError>("--tta {} is of pictures, which {} was not trained on", a.tta, a.model);
  std::vector<std::string> empty;
  std::unique_ptr<data::Feed> set;
  if (train::has_arrays(recipe)) {
    set = train::test_arrays(recipe, session.encoding, a.data, busy);
    for (const std::string& line : set->notes()) warnings.push_back(line);
  } else if (texts) {
    set = train::test_texts(recipe, session.classes, path, busy);
    for (const std::string& line : set->notes()) warnings.push_back(line);
  } else {
    auto opened =
        train::test_pictures(train::open_test_set(path, recipe, session.classes, session.extent, busy));
    empty = train::empty_classes(opened->loader());
    set = std::move(opened);
  }
  train::Predictor predictor(session, a.tta.empty() ? recipe.eval.tta : a.tta, recipe.train.precision);
  const train::Evaluation result =
      train::evaluate(predictor, *set, recipe.eval.metrics,
                      [&](int64_t done, int64_t total) { busy("evaluating", done, total); });
  train::require_few_bad(*set, recipe.data.most_bad,
                         fmt::format("Mend the data, or raise data.most_bad in {}.",
                                     train::RunFolder::open(a.model).recipe().string()));
  std::set<int64_t> named;
  for (const auto& list : {train::skipped_samples(*set, named), empty})
    warnings.insert(warnings.end(), list.begin(), list.end());

  if (a.json) {
    for (const std::string& line : warnings) fmt::print(stderr, "{}\n", line);
    std::vector<std::pair<std::string, Json>> fields = {
        {"data", set->path()}, {texts || train::has_arrays(recipe) ? "targets" : "pictures", result.count}};
    std::vector<std::pair<std::string, Json>> intervals;
    for (const eval::Measured& metric : result.metrics) {
      fields.emplace_back(metric.name, metric.value);
      intervals.emplace_back(metric.name, std::vector<Json>{metric.low, metric.high});
    }
    fields.emplace_back("intervals", json_object(intervals));
    fields.emplace_back("seconds", result.seconds);
    fmt::print("{}\n", json_object(fields).text);
    return 0;
  }
  for (const std::string& line : warnings) progress.print(line);
  const char* unit = train::has_arrays(recipe) ? set->unit()
                     : !texts                  ? "pictures"
                     : session.classes.empty() ? "tokens"
                                               : "texts";
  progress.print(
      fmt::format("{}: {} {} in {:.1f} s", set->path(), thousands(result.count), unit, result.seconds));
  for (const eval::Measured& metric : result.metrics) progress.print(metric_line(metric));
  return 0;
}

}  // namespace

Action declare_eval(Command& command) {
  auto a = std::make_shared<Arguments>();
  command.positional("MODEL", a->model, "a run folder")
      .positional("DATA", a->data, "a labelled set; by default the recipe's data.test", false)
      .option("--tta", a->tta, "test-time augmentation, instead of the recipe's: none, flip or shift")
      .flag("--json", a->json, "print one JSON object")
      .footer(
          "  millrace eval runs/letters-1\n"
          "  millrace eval runs/cifar10-1 ${MILLRACE_DATA}/cifar10/test.tar --tta none --json\n");
  return [a] {
    if (!a->tta.empty() && a->tta != "none" && a->tta != "flip" && a->tta != "shift")
      fail<InputError>("--tta is none, flip or shift, not '{}'", a->tta);
    return run(*a);
  };
}

}  // namespace millrace::cli
