// Calibrating a run, through the public headers alone.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fstream>

#include <millrace/run.h>

#include "support/temp_folder.h"

using namespace millrace;

namespace {

task::Recipe noisy_recipe(const std::filesystem::path& folder) {
  std::ofstream file(folder / "noisy.csv");
  file << "across,up,side\n";
  for (int i = 0; i < 400; ++i) {
    const int across = i * 37 % 101, up = i * 59 % 97;
    const bool below = across > up + 40;
    file << across << ',' << up << ',' << (below != (i % 7 == 0) ? "below" : "above") << '\n';
  }
  return task::parse_recipe(R"([data]
test_share = 0.4
[output]
kind = "class"
column = "side"
[train]
epochs = 8
batch = 20
optimizer = { kind = "adam", lr = 0.03 }
)",
                            "noisy",
                            std::vector<std::string>{"data.train=" + (folder / "noisy.csv").string()});
}

double value_of(const std::vector<eval::Measured>& metrics, const std::string& name) {
  for (const eval::Measured& each : metrics)
    if (each.name == name) return each.value;
  return NAN;
}

}  // namespace

TEST_CASE("a run is calibrated for all that is made of it, for as long as its weights stay") {
  testing::TempFolder folder;
  Run run = Run::train(noisy_recipe(folder.path()), folder / "run");
  const std::vector<std::string> data = {(folder / "noisy.csv").string()};
  const Predictions before = run.predict(data);
  const task::Evaluation raw = run.evaluate();
  CHECK(run.calibrations().empty());

  const auto fitted = run.calibrate({.metric = "brier"});
  REQUIRE(fitted.size() == 1);
  CHECK(fitted[0].count == raw.count);
  CHECK(value_of(fitted[0].before, "log-loss") ==
        doctest::Approx(value_of(raw.metrics, "log-loss")).epsilon(1e-9));
  CHECK(value_of(fitted[0].after, "log-loss") < value_of(fitted[0].before, "log-loss"));
  CHECK(std::isfinite(value_of(fitted[0].after, "brier")));
  CHECK(run.calibrations() == std::vector<std::string>{fitted[0].what});
  const Predictions after = run.predict(data);
  const double temperature = before.outputs[0].logits.at(0) / after.outputs[0].logits.at(0);
  CHECK(std::abs(temperature - 1) > 1e-3);
  for (int64_t i = 0; i < before.outputs[0].logits.count(); ++i)
    CHECK(before.outputs[0].logits.at(i) ==
          doctest::Approx(temperature * after.outputs[0].logits.at(i)).epsilon(1e-4));
  CHECK(value_of(run.evaluate().metrics, "log-loss") ==
        doctest::Approx(value_of(fitted[0].after, "log-loss")).epsilon(1e-5));

  // On top of it a threshold, which changes decisions and no probability.
  const auto tuned = run.calibrate({.method = "threshold", .metric = "recall"});
  CHECK(value_of(tuned.at(0).after, "recall") == 1);
  CHECK(run.predict(data).outputs[0].values.identical(after.outputs[0].values));
  const task::Evaluation decided = run.evaluate();
  REQUIRE(decided.classes.size() == 1);
  CHECK(decided.classes[0].names == std::vector<std::string>{"above", "below"});
  CHECK(decided.classes[0].classes.at(1).recall.value == 1);
  CHECK(decided.classes[0].confusion.at(2) == 0);
  CHECK(decided.classes[0].confusion.at(1) > raw.classes.at(0).confusion.at(1));

  // Others that open the run, and a copy of it, have it, too.
  for (const char* name : {"run", "copy"}) {
    if (name == std::string("copy")) run.save(folder / "copy", 5);
    Run other = Run::open(folder / name);
    CHECK(other.calibrations() == run.calibrations());
    CHECK(other.predict(data).outputs[0].values.identical(after.outputs[0].values));
  }
  CHECK_THROWS_AS(run.calibrate({.method = "cold"}), InputError);
  // Weights of another step are not calibrated.
  std::string said;
  train::Observer observer;
  observer.message = [&](const std::string& line) { said += line; };
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run/checkpoints"))
    newest = std::max(newest, entry.path());
  std::filesystem::remove(newest);
  Run older = Run::open(folder / "run", observer);
  CHECK(older.calibrations().empty());
  CHECK(said.find("does not fit the weights of step") != std::string::npos);
}
