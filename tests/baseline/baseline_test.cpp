// Exact numbers of what a network has to beat, on tables of a few rows.
#include "baseline/baseline.h"

#include <cmath>
#include <doctest/doctest.h>
#include <fmt/core.h>

#include "base/file.h"
#include "baseline/context.h"
#include "baseline/neighbours.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::baseline;

namespace {

/// A table to train on, and one to test on.
class BaselineTable {
 public:
  BaselineTable(const std::string& training, const std::string& tests) {
    write_file(folder_ / "train.csv", training);
    write_file(folder_ / "test.csv", tests);
  }
  task::Recipe recipe(const std::string& more) const {
    return task::parse_recipe(
        fmt::format("[data]\ntrain = \"{0}/train.csv\"\ntest = \"{0}/test.csv\"\n[train]\nbatch = 2\n",
                    folder_.path().string()) +
            more,
        "test.toml");
  }
  Report measured(const std::vector<std::string>& only, const std::string& more) const {
    Options options;
    options.only = only;
    return measure(recipe(more), options);
  }

 private:
  testing::TempFolder folder_;
};

double metric_of(const Result& result, const std::string& name) {
  for (const eval::Measured& each : result.metrics)
    if (each.name == name) return each.value;
  FAIL("there is no " << name);
  return 0;
}

const std::string of_classes =
    "[input]\ncolumns = [\"size\"]\n[output]\ncolumn = \"label\"\n[eval]\nmetrics = [\"accuracy\", "
    "\"log-loss\"]\n";
const std::string of_prices =
    "[input]\ncolumns = [\"size\"]\n[output]\ncolumn = \"price\"\nkind = \"number\"\n[eval]\nmetrics = "
    "[\"mae\"]\n";

BaselineTable people() {
  return {"size,said,label\n1,yes,yes\n2,yes,yes\n3,yes,yes\n4,no,yes\n5,,yes\n6,no,yes\n7,no,no\n8,no,no\n",
          "size,said,label\n2,yes,yes\n6,,yes\n7,no,no\n3,yes,no\n"};
}

}  // namespace

TEST_CASE("baselines of classes are as sure as what they tell was right in training") {
  const std::string recipe =
      of_classes + "[baseline]\nheuristic = \"size > 6 -> no; yes\"\nhuman = \"said\"\n";
  const Report report = people().measured({"constant", "heuristic", "human"}, recipe);
  REQUIRE(report.results.size() == 3);
  CHECK(report.rows == 4);
  const Result &constant = report.results[0], &rule = report.results[1], &human = report.results[2];
  CHECK(metric_of(constant, "accuracy") == 0.5);
  CHECK(metric_of(constant, "log-loss") == doctest::Approx(-(std::log(.75) + std::log(.25)) / 2));
  // Of eight rows the rule tells two "no" and six "yes", all rightly, and one row counts for what occurs.
  CHECK(metric_of(rule, "accuracy") == 0.75);
  CHECK(
      metric_of(rule, "log-loss") ==
      doctest::Approx(-(2 * std::log(6.75 / 7) + std::log(2.25 / 3) + std::log(.25 / 7)) / 4).epsilon(1e-3));
  CHECK(rule.note.empty());
  // People's "no" was right in two of four, and stays their answer.
  CHECK(metric_of(human, "accuracy") == doctest::Approx(2.0 / 3));
  CHECK(metric_of(human, "log-loss") ==
        doctest::Approx(-(std::log(3.75 / 4) + std::log(.25 / 4) + std::log(.5)) / 3).epsilon(1e-3));
  CHECK(human.note == "of 3 of 4 samples: others have no answer");
  // A condition alone tells the second class.
  const Report alone =
      people().measured({"heuristic"}, of_classes + "[baseline]\nheuristic = \"size <= 6\"\n");
  CHECK(metric_of(alone.results[0], "log-loss") == doctest::Approx(metric_of(rule, "log-loss")));
  // Without rules and answers there is nothing to measure, and that is said.
  for (const Result& each : people().measured({"heuristic", "human"}, of_classes).results) {
    CAPTURE(each.name);
    CHECK(each.metrics.empty());
    CHECK(each.note.find("baseline." + each.name) != std::string::npos);
  }
}

TEST_CASE("baselines of numbers: the mean, formulas, and the mean where no rule gives one") {
  const BaselineTable table("size,price\n1,10\n2,20\n3,30\n4,60\n", "size,price\n1,12\n3,31\n5,50\n");
  const auto mae = [&](const std::string& rule, const std::string& name) {
    const Report report = table.measured({name}, of_prices + "[baseline]\nheuristic = \"" + rule + "\"\n");
    CHECK(report.results[0].note == (rule.find("->") == std::string::npos || name == "constant"
                                         ? ""
                                         : "the mean for 1 samples that no rule gives a number for"));
    return metric_of(report.results[0], "mae");
  };
  CHECK(mae("10 * size", "constant") == doctest::Approx((18 + 1 + 20) / 3.0));
  CHECK(mae("10 * size", "heuristic") == doctest::Approx((2 + 1 + 0) / 3.0));
  CHECK(mae("size > 4 -> 8 * size; size > 2 -> 10 * size", "heuristic") ==
        doctest::Approx((18 + 1 + 10) / 3.0));
}

TEST_CASE("texts are near by their rare words") {
  // 100 texts of a word that all have, and five that share a rare one with what is asked.
  std::string training = "label\ttext\n";
  for (int i = 0; i < 100; ++i) training += "common\tthe\n";
  for (int i = 0; i < 5; ++i)
    training += fmt::format("{}\tquince {}{}{}\n", i < 4 ? "rare" : "common", i, "abcde"[i], i);
  testing::TempFolder folder;
  write_file(folder / "train.tsv", training);
  write_file(folder / "test.tsv", std::string("label\ttext\nrare\tthe quince\ncommon\tquince\nrare\tpear\n"));
  Options options;
  options.only = {"nearest_neighbours"};
  const Report report =
      measure(task::parse_recipe(
                  fmt::format("[data]\ntrain = \"{0}/train.tsv\"\ntest = \"{0}/test.tsv\"\n[input]\nkind = "
                              "\"text\"\ncolumn = \"text\"\n[output]\ncolumn = \"label\"\n[eval]\nmetrics = "
                              "[\"log-loss\"]\n[train]\nbatch = 16\n",
                              folder.path().string()),
                  "test.toml"),
              options);
  // Where nothing is near, as often as the classes occur.
  CHECK(metric_of(report.results[0], "log-loss") ==
        doctest::Approx(-(std::log(.8) + std::log(.2) + std::log(4.0 / 105)) / 3).epsilon(1e-4));
  CHECK(report.results[0].note == "by their words");
}

TEST_CASE(
    "neighbours: twins in all columns are near duplicates, and how far their targets differ is counted") {
  const auto of = [](bool classes, int kinds_of_twins) {
    std::string text = classes ? "a,b,kind,label\n" : "a,b,kind,price\n";
    for (int i = 0; i < 80; ++i) {
      const int pair = i / 2, twin = i % 2;
      // Every fourth pair differs in what is to be predicted.
      const int target = (pair / 4 % 2) ^ (pair % 4 == 0 ? twin : 0);
      const bool other_kind = pair >= kinds_of_twins && twin == 1;
      text += fmt::format("{},{},{},{}\n", pair * pair % 41, 0.5 * pair, other_kind ? "oak" : "elm",
                          classes ? std::string(target ? "yes" : "no") : std::to_string(3 * target));
    }
    const BaselineTable table(text, text);
    const Options options;
    Context context(
        table.recipe(fmt::format("[input]\nkind = \"table\"\n[output]\nkind = \"{}\"\ncolumn = \"{}\"\n",
                                 classes ? "class" : "number", classes ? "label" : "price")),
        options);
    const auto found = look_at_neighbours(context);
    REQUIRE(found);
    return *found;
  };
  for (const bool classes : {true, false}) {
    CAPTURE(classes);
    const Neighbours all = of(classes, 40);
    CHECK(all.looked == 80);
    CHECK(all.near == 80);
    CHECK(all.duplicates);
    CHECK(all.ratio() == doctest::Approx(all.disagreement / all.chance));
    // A quarter of the twins differ, of any two about half.
    if (classes) CHECK(all.disagreement == .25);
    CHECK(all.ratio() > 0.35);
    CHECK(all.ratio() < 0.7);
    const Neighbours some = of(classes, 16);
    CHECK(some.near == 32);
    CHECK(some.duplicates);
    const Neighbours few = of(classes, 12);  // too few to go by: all nearest neighbours count
    CHECK(few.near == 24);
    CHECK(!few.duplicates);
  }
}
