#include <cmath>
#include <doctest/doctest.h>

#include "base/file.h"
#include "baseline/baseline.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::baseline;

namespace {

Report report_of(std::vector<Result> results) {
  Report report;
  report.train_digest = "aa";
  report.test_digest = "bb";
  report.data = "rows.csv";
  report.rows = 7;
  report.metrics = {"accuracy", "log-loss"};
  report.progress = "accuracy";
  report.results = std::move(results);
  return report;
}
Report usual_report() {
  return report_of(
      {{.name = "constant", .metrics = {{"accuracy", .7, .6, .8}, {"log-loss", .6, .5, .7}}},
       {.name = "linear", .metrics = {{"accuracy", .8, .7, .9}, {"log-loss", .4, .3, .5}}, .train = .82},
       {.name = "human", .metrics = {{"accuracy", NAN, NAN, NAN}}}});
}

}  // namespace

TEST_CASE("a network beside baselines: what it loses to, ties with, is no more than chance above, or beats") {
  const auto says = [](const Report& report, double accuracy, double low, double high, double loss) {
    return compare(report, {{"accuracy", accuracy, low, high}, {"log-loss", loss, loss - .05, loss + .05}},
                   NAN);
  };
  using Lines = std::vector<std::string>;
  CHECK(says(usual_report(), .9, .85, .95, .3) == Lines{"baseline: the network beats all of them"});
  CHECK(says(usual_report(), .75, .7, .8, .5) ==
        Lines{"baseline: the network loses to linear in accuracy: 75.00 % against 80.00 %",
              "baseline: the network loses to linear in log-loss: 0.5000 against 0.4000"});
  CHECK(says(usual_report(), .8, .7, .9, .3) ==
        Lines{"baseline: the network is no better than linear in accuracy: 80.00 % against 80.00 %"});
  const Lines chance = says(usual_report(), .85, .8, .9, .3);
  REQUIRE(chance.size() == 1);
  CHECK(chance[0].starts_with("baseline: the network is no more than chance above linear in accuracy"));
  CHECK(says(usual_report(), .85, .81, .9, .38).size() == 1);  // within the interval of the loss
  // What was not measured is not compared.
  CHECK(says(usual_report(), NAN, NAN, NAN, .3) == Lines{"baseline: the network beats all of them"});
  CHECK(says(report_of({{.name = "human", .note = "none"}}), .9, .85, .95, .3).empty());
  CHECK(says(report_of({}), .9, .85, .95, .3).empty());
}

TEST_CASE("a constant that is well calibrated tells nothing; a model that is does") {
  const auto with = [](const char* name) {
    return report_of({{.name = name, .metrics = {{"ece", .001, 0, .002}}}});
  };
  const std::vector<eval::Measured> network = {{"ece", .05, .04, .06}};
  CHECK(compare(with("constant"), network, NAN).empty());
  CHECK(compare(with("linear"), network, NAN).size() == 1);
}

TEST_CASE(
    "what is learnt by heart is suspected where neighbours differ, and the network is far above a line") {
  Report report = usual_report();
  const auto suspected = [&](double train) { return !pattern(report, "the network", train).empty(); };
  CHECK(!suspected(1));  // neighbours were not looked at
  report.neighbours =
      Neighbours{.looked = 100, .near = 40, .disagreement = .25, .chance = .5, .duplicates = true};
  CHECK(suspected(.93));
  CHECK(!suspected(.91));
  CHECK(!suspected(NAN));
  CHECK(pattern(report, "the network", 1)
            .find("40 of 100 samples have a near duplicate; their targets differ 50 %") != std::string::npos);
  report.neighbours->disagreement = .24;
  CHECK(!suspected(1));
  report.neighbours->disagreement = .5;
  report.neighbours->duplicates = false;
  CHECK(pattern(report, "the network", 1).find("targets of nearest neighbours differ 100 %") !=
        std::string::npos);
  // Of a loss less is more: it has to be under 80 %.
  report.progress = "mse";
  CHECK(suspected(.65));
  CHECK(!suspected(.66));
  report.results.erase(report.results.begin() + 1);
  CHECK(!suspected(.1));
}

TEST_CASE("a report is read as it was written, and a damaged one, or another version's, is none") {
  testing::TempFolder folder;
  Report report = usual_report();
  report.neighbours =
      Neighbours{.looked = 9, .near = 4, .disagreement = .25, .chance = .5, .duplicates = true};
  report.results[0].note = "of 3 of 4 samples";
  report.results[0].seconds = 1.5;
  const std::string text = report_json(report);
  write_file(folder / "one.json", text);
  const auto read = read_report(folder / "one.json");
  REQUIRE(read);
  CHECK(report_json(*read) == text);
  CHECK(std::isnan(read->results[0].train));
  CHECK(std::isnan(read->results[2].metrics[0].value));
  CHECK(read->results[1].train == .82);
  CHECK(read->results[0].metrics[1].high == .7);
  CHECK(read->results[0].metrics[0].name == "accuracy");
  CHECK(read->neighbours->ratio() == .5);
  CHECK(read->neighbours->near == 4);
  report.neighbours.reset();
  write_file(folder / "two.json", report_json(report));
  CHECK(!read_report(folder / "two.json")->neighbours);
  write_file(folder / "cut.json", text.substr(0, text.size() / 2));
  CHECK(!read_report(folder / "cut.json"));
  std::string other = text;
  other.replace(other.find("\"version\": 1"), 12, "\"version\": 2");
  write_file(folder / "other.json", other);
  CHECK(!read_report(folder / "other.json"));
  CHECK(!read_report(folder / "none.json"));
  CHECK(report_path(folder.path()) == folder / "baseline.json");
  CHECK(report_path(folder / "adult.toml") == folder / "adult.baseline.json");
}

TEST_CASE(
    "the last value of training is found between lines of other things, also where the last one is cut off") {
  testing::TempFolder folder;
  write_file(folder / "metrics.jsonl",
             std::string("{\"train/accuracy\": 0.5}\n{\"train/accuracy\": 0.75}\n{\"loss\": 1}\n"
                         "{\"train/accuracy\": null}\n[1]\n{\"train/accuracy\": 0.9"));
  CHECK(last_of_training(folder / "metrics.jsonl", "accuracy") == 0.75);
  CHECK(std::isnan(last_of_training(folder / "metrics.jsonl", "mse")));
  CHECK(std::isnan(last_of_training(folder / "metrics.jsonl", "")));
  CHECK(std::isnan(last_of_training(folder / "none.jsonl", "accuracy")));
}
