#include "train/averages.h"

#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/file.h"
#include "optim/model_scope.h"
#include "support/temp_folder.h"
#include "task/feeds.h"
#include "task/model.h"

using namespace millrace;
using testing::TempFolder;

namespace {

std::shared_ptr<nn::Module> averaged_model() {
  const nn::Model model = nn::make_layers({"linear 3", "batch-norm", "linear 2"}, {4});
  model.module->initialise(5);
  return model.module;
}

std::vector<double> values_of(nn::Module& model, const std::string& name) {
  return model.find(name)->to_array().to_doubles();
}

void set_all(nn::Module& model, const std::string& name, double value) {
  Array array = model.find(name)->to_array();
  array.edit<float>([&](std::span<float> to) { std::fill(to.begin(), to.end(), static_cast<float>(value)); });
}

std::unique_ptr<optim::TrainStep> averaged_step(const std::shared_ptr<nn::Module>& model, double ema) {
  optim::TrainOptions options;
  options.ema = ema;
  auto step = std::make_unique<optim::TrainStep>(
      model, std::vector<optim::TensorSpec>{{"x", {f32, {6, 4}}}},
      [](nn::Module& m, std::span<const Tensor> in) {
        return optim::StepResult{(m(in[0]) * m(in[0])).mean()};
      },
      optim::sgd({.momentum = 0.9}), options);
  nn::init::normal(0, 1)(step->input(0), 1, "x");
  return step;
}

}  // namespace

TEST_CASE("the mean of weights is that of those it was given, and changes places with the model's") {
  const auto model = averaged_model();
  train::WeightMean mean(*model);
  for (const double value : {1.0, 2.0, 6.0}) {
    set_all(*model, "0.weight", value);
    mean.add();
  }
  CHECK(mean.count == 3);
  CHECK(mean.get().at("0.weight").at(0) == doctest::Approx(3));
  CHECK(mean.get().at("1.running_var").at(0) == 1);
  CHECK_FALSE(mean.get().contains("1.num_batches_tracked"));
  {
    const train::Exchanged averaged(*model, mean.get());
    CHECK(values_of(*model, "0.weight")[0] == doctest::Approx(3));
    CHECK(mean.get().at("0.weight").at(0) == 6);
  }
  CHECK(values_of(*model, "0.weight")[0] == 6);
  CHECK(mean.get().at("0.weight").at(0) == doctest::Approx(3));
}

TEST_CASE(
    "a step's moving average is that of its parameters and buffers, without bias, and changes nothing else") {
  const double decay = 0.8;
  const auto model = averaged_model(), plain = averaged_model();
  const auto step = averaged_step(model, decay), other = averaged_step(plain, 0);
  const auto average_of = [&](const std::string& name) {
    for (const auto& [each, array] : step->state())
      if (each == "ema." + name) return array.to_doubles();
    return std::vector<double>();
  };
  CHECK(average_of("0.weight") == values_of(*model, "0.weight"));
  for (const std::string name : {"0.weight", "1.running_mean", "1.bias"}) {
    CAPTURE(name);
    std::vector<double> sum(values_of(*model, name).size());
    double weights = 0;
    for (int i = 0; i < 5; ++i) {
      step->run(0.05);
      other->run(0.05);
      const std::vector<double> now = values_of(*model, name);
      CHECK(now == values_of(*plain, name));
      if (name != "0.weight") continue;
      weights = decay * weights + 1;
      for (size_t k = 0; k < now.size(); ++k) sum[k] = decay * sum[k] + now[k];
      for (size_t k = 0; k < now.size(); ++k)
        CHECK(average_of(name)[k] == doctest::Approx(sum[k] / weights).epsilon(1e-5));
    }
  }
  CHECK(average_of("1.num_batches_tracked").empty());
  CHECK(average_of("1.running_mean") != values_of(*model, "1.running_mean"));
  CHECK(step->run_verified(0.05) == "");
  CHECK_THROWS_AS(averaged_step(averaged_model(), 1), InputError);
}

TEST_CASE("statistics are measured anew as the mean over batches, and the feed stays where it is") {
  const TempFolder folder;
  std::string text = "a,b,y\n";
  for (int i = 0; i < 120; ++i)
    text += std::to_string(std::sin(i)) + "," + std::to_string(7 + 3 * std::cos(3 * i)) + "," +
            (i % 2 == 0 ? "p" : "q") + "\n";
  write_file(folder.path() / "rows.csv", text);
  const task::Recipe recipe =
      task::parse_recipe("[data]\ntrain = \"" + folder.path().string() +
                             "/rows.csv\"\n[output]\ncolumn = \"y\"\n[model]\nlayers = [\"batch-norm\", "
                             "\"linear 2\"]\n[train]\nbatch = 120\n",
                         "test");
  std::vector<std::string> notes;
  task::Opened opened = task::open_training(recipe, "", 0, nullptr, notes);
  task::make_network(opened.task);
  data::Feed& feed = *opened.training.feed;
  feed.next();
  const data::Cursor before = feed.cursor();
  const auto fields = feed.fields();
  train::Statistics statistics(opened.task, {fields.begin(), fields.end()},
                               {"0.running_mean", "0.running_var"}, 1);
  nn::Module& model = *opened.task.network;
  set_all(model, "0.running_mean", 40);
  statistics.measure(feed, 3);
  // Columns are standardised before the network; a batch is all rows, and its variance is unbiased.
  for (const double mean : values_of(model, "0.running_mean")) CHECK(std::abs(mean) < 1e-4);
  for (const double variance : values_of(model, "0.running_var"))
    CHECK(variance == doctest::Approx(120.0 / 119).epsilon(1e-3));
  CHECK(feed.cursor().epoch == before.epoch);
  CHECK(feed.cursor().position == before.position);
}
