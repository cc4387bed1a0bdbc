// Recipes at work, through the public headers alone.
#include <doctest/doctest.h>
#include <fstream>
#include <iterator>
#include <utility>

#include <millrace/run.h>
#include <millrace/weights.h>

#include "support/temp_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Points of a plane that a line parts into two classes.
void write_points(const fs::path& path) {
  std::ofstream file(path);
  file << "across,up,side\n";
  for (int i = 0; i < 240; ++i) {
    const int across = i * 37 % 101, up = i * 59 % 97;
    file << across << ',' << up << ',' << (across > up ? "below" : "above") << '\n';
  }
}

task::Recipe points_recipe(const fs::path& folder, const std::vector<std::string>& more = {}) {
  if (!fs::exists(folder / "points.csv")) write_points(folder / "points.csv");
  const std::string text = R"([data]
test_share = 0.25
[output]
kind = "class"
column = "side"
[train]
epochs = 4
batch = 20
optimizer = { kind = "sgd", lr = 0.2, momentum = 0.9 }
[eval]
batch = 32
)";
  std::vector<std::string> overrides = {"data.train=" + (folder / "points.csv").string()};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return task::parse_recipe(text, "points", overrides);
}

/// What a file holds, as rows of the program's own.
std::shared_ptr<const data::Dataset> in_memory(const fs::path& file) {
  const auto set = data::open_dataset(file.string());
  std::vector<std::vector<data::Value>> rows(static_cast<size_t>(set->count()));
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t c = 0; c < set->columns().size(); ++c)
      rows[i].push_back(set->read(static_cast<int64_t>(i), c));
  return data::memory_dataset("points", set->columns(), std::move(rows));
}

/// The digests of its data that a run folder keeps.
std::vector<std::string> digests_in(const fs::path& run) {
  std::ifstream file(run / "origin.jsonl");
  const std::string text{std::istreambuf_iterator<char>(file), {}}, key = "\"digest\":\"";
  std::vector<std::string> digests;
  for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1))
    digests.push_back(text.substr(at + key.size(), 32));
  return digests;
}

void check_same(const task::Evaluation& a, const task::Evaluation& b) {
  CHECK(a.count == b.count);
  REQUIRE(a.metrics.size() == b.metrics.size());
  for (size_t i = 0; i < a.metrics.size(); ++i) {
    CHECK(a.metrics[i].name == b.metrics[i].name);
    CHECK(a.metrics[i].value == b.metrics[i].value);
    CHECK(a.metrics[i].low == b.metrics[i].low);
  }
}

bool same_weights(nn::Module& a, nn::Module& b) {
  const auto of_a = a.parameters(), of_b = b.parameters();
  bool same = of_a.size() == of_b.size();
  for (size_t i = 0; same && i < of_a.size(); ++i)
    same = of_a[i].name == of_b[i].name && of_a[i].tensor->to_array().identical(of_b[i].tensor->to_array());
  return same;
}

}  // namespace

TEST_CASE("a run trains, measures, predicts, saves and exports") {
  testing::TempFolder folder;
  const task::Recipe recipe = points_recipe(folder.path());
  int64_t steps = 0;
  std::vector<std::string> lines;
  train::Observer observer;
  observer.step = [&](const train::Status& status) { steps = status.step; };
  observer.message = [&](const std::string& line) { lines.push_back(line); };
  Run run = Run::train(recipe, folder / "run", observer);
  CHECK(run.outcome().finished);
  CHECK(steps == run.outcome().step);
  CHECK(!lines.empty());
  CHECK(run.folder() == folder / "run");
  CHECK(run.recipe().inputs.at(0).kind == "table");
  REQUIRE(run.outcome().test.size() > 0);
  CHECK(run.outcome().test[0].value > 0.8);

  const task::Evaluation again = run.evaluate();
  CHECK(again.metrics.at(0).name == run.outcome().test[0].name);
  CHECK(again.metrics[0].value == run.outcome().test[0].value);
  CHECK(again.metrics[0].low < again.metrics[0].value);
  CHECK(again.count > 40);
  CHECK(run.evaluate((folder / "points.csv").string()).count == 240);

  // The same rows from a file, from memory, and by another run of the folder.
  const Predictions file = run.predict({(folder / "points.csv").string()});
  REQUIRE(file.samples.size() == 240);
  REQUIRE(file.outputs.size() == 1);
  CHECK(file.failed.empty());
  CHECK(file.outputs[0].classes == std::vector<std::string>{"above", "below"});
  CHECK(file.outputs[0].logits.shape() == Shape{240, 2});
  CHECK(file.outputs[0].values.at(0) + file.outputs[0].values.at(1) == doctest::Approx(1));
  const auto set = data::open_dataset((folder / "points.csv").string());
  std::vector<std::vector<data::Value>> rows;
  for (int64_t i = 0; i < set->count(); ++i)
    rows.push_back({set->read(i, set->column("up")), set->read(i, set->column("across"))});
  const std::shared_ptr<const data::Dataset> memory = data::memory_dataset(
      "rows", {{"up", data::ColumnKind::integer}, {"across", data::ColumnKind::integer}}, std::move(rows));
  Run opened = Run::open(folder / "run");
  CHECK(opened.predict(memory).outputs[0].logits.identical(file.outputs[0].logits));
  const Predictions missing = run.predict({(folder / "nowhere.csv").string()});
  CHECK(missing.samples.empty());
  REQUIRE(missing.failed.size() == 1);
  CHECK(missing.failed[0].find("nowhere.csv") != std::string::npos);
  CHECK_THROWS_WITH_AS(run.generate("x", 1), doctest::Contains("does not predict the next token"),
                       InputError);

  run.export_onnx(folder / "points.onnx");
  CHECK(fs::file_size(folder / "points.onnx") > 100);
  run.save(folder / "copy", 3);
  CHECK(same_weights(*Run::open(folder / "copy").model(), *run.model()));
  CHECK_THROWS_WITH_AS(run.save(folder / "copy"), doctest::Contains("holds a run already"), InputError);
}

TEST_CASE("a run that its observer stops goes on to the same weights") {
  testing::TempFolder folder;
  const task::Recipe recipe = points_recipe(folder.path());
  const Run whole = Run::train(recipe, folder / "whole");
  int64_t done = 0;
  train::Observer observer;
  observer.step = [&](const train::Status& status) { done = status.step; };
  observer.stop = [&] { return done == 7; };
  const Run half = Run::train(recipe, folder / "half", observer);
  CHECK(!half.outcome().finished);
  CHECK(half.outcome().step == 7);
  const Run resumed = Run::resume(folder / "half");
  CHECK(resumed.outcome().finished);
  CHECK(same_weights(*resumed.model(), *whole.model()));
}

TEST_CASE("a data set of the program trains and measures to the bits of its file") {
  testing::TempFolder folder;
  std::vector<double> losses;
  train::Observer observer;
  observer.step = [&](const train::Status& status) { losses.push_back(status.loss); };
  const task::Recipe recipe = points_recipe(folder.path());
  Run file = Run::train(recipe, folder / "file", observer);
  const std::vector<double> of_file = std::exchange(losses, {});

  const auto points = in_memory(folder / "points.csv");
  task::Recipe own = points_recipe(folder.path(), {"data.train=set:points"});
  own.data.sets["points"] = points;
  Run set = Run::train(own, folder / "set", observer);
  CHECK(of_file.size() == static_cast<size_t>(file.outcome().step));
  CHECK(losses == of_file);
  CHECK(same_weights(*set.model(), *file.model()));
  CHECK(set.recipe().inputs.at(0).kind == "table");
  CHECK(digests_in(folder / "set").size() == 2);
  CHECK(digests_in(folder / "set") == digests_in(folder / "file"));
  CHECK(Run::prepare(own).training().digest() == Run::prepare(recipe).training().digest());

  // The samples that are kept to test on, and all of them, by whatever they are named.
  check_same(set.evaluate(), file.evaluate());
  const task::Evaluation all = file.evaluate((folder / "points.csv").string());
  CHECK(all.count == 240);
  check_same(set.evaluate(points), all);
  check_same(set.evaluate("set:points"), all);
  check_same(file.evaluate(points), all);
  check_same(file.evaluate(data::where(points, "up < 48")), set.evaluate(data::where(points, "up < 48")));
  CHECK(set.tests(points).count() == 240);
  check_same(set.evaluate(), file.evaluate());  // not what was measured on last
  CHECK_THROWS_WITH_AS(set.evaluate(std::shared_ptr<const data::Dataset>()), doctest::Contains("null"),
                       InputError);
}

TEST_CASE("a run on data sets of the program goes on when they are given again") {
  testing::TempFolder folder;
  task::Recipe recipe = points_recipe(folder.path(), {"data.train=set:points"});
  recipe.data.sets["points"] = in_memory(folder / "points.csv");
  const Run whole = Run::train(recipe, folder / "whole");
  int64_t done = 0;
  train::Observer observer;
  observer.step = [&](const train::Status& status) { done = status.step; };
  observer.stop = [&] { return done == 7; };
  CHECK(!Run::train(recipe, folder / "half", observer).outcome().finished);

  CHECK_THROWS_WITH_AS(Run::resume(folder / "half"), doctest::Contains("set:points is a data set of the"),
                       InputError);
  const task::DataSets less = {{"points", data::slice(recipe.data.sets["points"], 0, 200)}};
  CHECK_THROWS_WITH_AS(Run::resume(folder / "half", {}, less), doctest::Contains("the run was begun with"),
                       InputError);
  Run opened = Run::open(folder / "half");
  CHECK_THROWS_WITH_AS(opened.evaluate(), doctest::Contains("set:points"), InputError);
  CHECK(opened.evaluate(recipe.data.sets["points"]).count == 240);
  CHECK(Run::open(folder / "half", {}, {}, "", recipe.data.sets).training().count() < 240);

  const Run resumed = Run::resume(folder / "half", {}, recipe.data.sets);
  CHECK(resumed.outcome().finished);
  CHECK(same_weights(*resumed.model(), *whole.model()));
}

TEST_CASE("data sets of the program are predicted like their files") {
  testing::TempFolder folder;
  std::ofstream file(folder / "points.svm");
  for (int i = 0; i < 240; ++i) file << i % 2 << " 1:" << i % 2 + i % 7 * 0.1 << (i % 3 ? " 3:1\n" : "\n");
  file.close();
  const std::string path = (folder / "points.svm").string();
  const std::shared_ptr<const data::Dataset> points = data::open_dataset(path);
  task::Recipe recipe = task::parse_recipe(
      "", "points", std::vector<std::string>{"data.train=set:points", "train.epochs=1", "output.kind=class"});
  recipe.data.sets["points"] = points;
  Run run = Run::train(recipe, folder / "run");
  // Arrays that are columns of numbers.
  const Predictions of_set = run.predict(points), of_file = run.predict(std::vector{path});
  REQUIRE(of_set.samples.size() == 240);
  CHECK(of_set.outputs[0].logits.identical(of_file.outputs[0].logits));
  CHECK(run.evaluate(points).count == 240);

  const std::shared_ptr<const data::Dataset> none = data::memory_dataset("none", points->columns(), {});
  CHECK_THROWS_WITH_AS(run.evaluate(none), "none: there are no samples", InputError);
  CHECK_THROWS_WITH_AS(run.predict(std::shared_ptr<const data::Dataset>()), doctest::Contains("null"),
                       InputError);
}

TEST_CASE("a loop of one's own makes the steps of a training") {
  testing::TempFolder folder;
  const task::Recipe recipe = points_recipe(folder.path());
  const Run trained = Run::train(recipe, folder / "run");

  Run run = Run::prepare(recipe);
  CHECK(run.folder().empty());
  data::Feed& feed = run.training();
  REQUIRE(feed.fields().size() == 2);
  CHECK(feed.fields()[1].name == "target");
  optim::TrainStep step(run.model(), run.step_inputs(), run.step_function(), optim::sgd({.momentum = 0.9}),
                        {.seed = 1});
  const int64_t steps = 4 * feed.batches_per_epoch();
  CHECK(steps == trained.outcome().step);
  for (int64_t i = 0; i < steps; ++i) {
    const data::FeedBatch& batch = feed.next();
    for (size_t k = 0; k < batch.arrays.size(); ++k)
      step.bind_input(static_cast<int>(k), feed.array(batch, k));
    step.run(0.2);
  }
  CHECK(same_weights(*run.model(), *trained.model()));
  CHECK(run.evaluate().metrics.at(0).value == trained.outcome().test.at(0).value);

  // A cursor that is put back gives the same batch.
  const data::Cursor at = feed.cursor();
  const Array first = feed.array(feed.next(), 0);
  feed.next();
  feed.seek(at);
  CHECK(feed.array(feed.next(), 0).identical(first));

  // Weights go to a file and into a model that is drawn anew; steps that were compiled before go on with
  // them.
  const Array logits = run.predict({(folder / "points.csv").string()}).outputs[0].logits;
  nn::save_weights(*run.model(), folder / "w.safetensors");
  Run other = Run::prepare(points_recipe(folder.path(), {"train.seed=2"}));
  CHECK(!other.predict({(folder / "points.csv").string()}).outputs[0].logits.identical(logits));
  nn::load_weights(*other.model(), folder / "w.safetensors");
  CHECK(other.predict({(folder / "points.csv").string()}).outputs[0].logits.identical(logits));
  // A trained model is trained on.
  Run tuned = Run::open(folder / "run");
  CHECK(tuned.training().fields().size() == 2);
  optim::TrainStep more(tuned.model(), tuned.step_inputs(), tuned.step_function(), optim::sgd());
  const data::FeedBatch& batch = tuned.training().next();
  for (size_t k = 0; k < batch.arrays.size(); ++k)
    more.bind_input(static_cast<int>(k), tuned.training().array(batch, k));
  more.run(0.1);
  CHECK(!same_weights(*tuned.model(), *trained.model()));
}

TEST_CASE("weights that do not fit leave a model as it was") {
  testing::TempFolder folder;
  nn::Linear model(3, 2), wider(4, 2);
  nn::Sequential other({std::make_shared<nn::Linear>(3, 2)});
  CHECK_THROWS_WITH_AS(nn::save_weights(model, folder / "w"), doctest::Contains("has no value"), InputError);
  model.initialise(1);
  wider.initialise(1);
  other.initialise(2);
  nn::save_weights(model, folder / "w");
  const auto arrays = track::read_safetensors(folder / "w");
  REQUIRE(arrays.size() == 2);
  CHECK(arrays[0].first == "weight");
  const Array before = wider.weight.to_array().clone();
  CHECK_THROWS_WITH_AS(nn::load_weights(wider, folder / "w"),
                       doctest::Contains("'weight' is f32[2, 3], the model wants f32[2, 4]"), InputError);
  CHECK(wider.weight.to_array().identical(before));
  CHECK_THROWS_WITH_AS(nn::load_weights(other, folder / "w"), doctest::Contains("there is no '0.weight'"),
                       InputError);
  track::write_safetensors(folder / "more", {arrays[0], arrays[1], {"extra", Array(f32, {1})}});
  CHECK_THROWS_WITH_AS(nn::load_weights(model, folder / "more"),
                       doctest::Contains("the model has no 'extra'"), InputError);
  // A model that was not drawn takes them too, and of another dtype.
  track::write_safetensors(folder / "f64", {{"weight", arrays[0].second.converted(f64)}, arrays[1]});
  nn::Linear fresh(3, 2);
  nn::load_weights(fresh, folder / "f64");
  CHECK(fresh.weight.to_array().identical(model.weight.to_array()));
}

TEST_CASE("a run says what is wrong") {
  testing::TempFolder folder;
  CHECK_THROWS_AS(Run::open(folder / "nothing"), InputError);
  const task::Recipe wrong = points_recipe(folder.path(), {"output.column=sid"});
  CHECK_THROWS_WITH_AS(Run::prepare(wrong), doctest::Contains("side"), InputError);
  const task::Recipe untested = points_recipe(folder.path(), {"data.test_share=0"});
  Run run = Run::prepare(untested);
  CHECK_THROWS_WITH_AS(run.evaluate(), doctest::Contains("names no test set"), InputError);
}

}  // namespace millrace
