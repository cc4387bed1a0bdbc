#include "task/model.h"

#include <doctest/doctest.h>

#include "nn/models/architecture.h"
#include "task/fake_task.h"

using namespace millrace;
using testing::FakeClass;
using testing::FakeInput;
using testing::FakeNumber;
using testing::put;

namespace {

std::vector<std::string> parameter_names(nn::Module& module) {
  std::vector<std::string> names;
  for (const nn::Named& named : module.parameters()) names.push_back(named.name);
  return names;
}

}  // namespace

TEST_CASE("the network of one input and one output is the architecture, with its names and drawn values") {
  task::Task task;
  put<FakeInput>(task.inputs, "", Shape{4});
  put<FakeClass>(task.outputs, "", 3);
  task.recipe.train.seed = 7;
  task::make_network(task);

  nn::ModelOptions options;
  options.numbers = 4;
  options.classes = 3;
  const nn::Architecture& table = nn::architectures().at("table");
  nn::Model plain = table.make("table", Settings(table.settings), options);
  plain.module->initialise(7);
  const auto own = task.network->parameters(), expected = plain.module->parameters();
  REQUIRE(own.size() == expected.size());
  for (size_t i = 0; i < own.size(); ++i) {
    CHECK(own[i].name == expected[i].name);
    CHECK(own[i].tensor->to_array().identical(expected[i].tensor->to_array()));
  }
}

TEST_CASE("a network outlives a task that is moved") {
  task::Task first;
  put<FakeInput>(first.inputs, "", Shape{4});
  put<FakeClass>(first.outputs, "", 3);
  first.recipe.model.layers = {"linear 3"};
  task::make_network(first);
  const task::Task task = std::move(first);
  first = {};
  const Tensor x(Array::full(f32, {2, 4}, 1));
  CHECK(task.network->logits({&x, 1}, false)[0].to_array().shape() == Shape{2, 3});
}

TEST_CASE("several inputs and outputs are branches and heads") {
  task::Task task;
  put<FakeInput>(task.inputs, "near", Shape{4});
  put<FakeInput>(task.inputs, "far", Shape{2});
  put<FakeClass>(task.outputs, "animal", 3);
  put<FakeNumber>(task.outputs, "price");
  task::make_network(task);
  const auto names = parameter_names(*task.network);
  const auto has = [&](const std::string& name) { return std::count(names.begin(), names.end(), name) == 1; };
  CHECK(has("branches.near.mlp.0.weight"));
  CHECK(has("branches.far.mlp.0.weight"));
  CHECK(has("heads.animal.weight"));
  CHECK(has("heads.price.bias"));
  const Tensor x[] = {Array::full(f32, {5, 4}, 1), Array::full(f32, {5, 2}, 1)};
  const auto logits = task.network->logits(x, false);
  REQUIRE(logits.size() == 2);
  CHECK(logits[0].to_array().shape() == Shape{5, 3});
  CHECK(logits[1].to_array().shape() == Shape{5, 1});
}

TEST_CASE("the settings of one input's network stay its own where there are several outputs") {
  task::Task task;
  put<FakeInput>(task.inputs, "", Shape{4});
  put<FakeClass>(task.outputs, "animal", 3);
  put<FakeNumber>(task.outputs, "price");
  task.recipe.model.layers = {"linear 5", "relu"};
  task::make_network(task);
  CHECK(task.network->find("branches.input.0.weight")->shape() == Shape{5, 4});
}

TEST_CASE("models that do not go with the data are named") {
  task::Task task;
  put<FakeInput>(task.inputs, "", Shape{4});
  put<FakeClass>(task.outputs, "", 10);
  task.recipe.model.layers = {"linear 7"};
  CHECK_THROWS_WITH_AS(task::make_network(task),
                       "the last layer, 'linear 7', gives [batch, 7], but output has 10 classes: the model "
                       "must end in [batch, 10]",
                       InputError);
  task.recipe.model.layers.clear();
  task.recipe.model.kind = "lenet";
  CHECK_THROWS_WITH_AS(task::make_network(task),
                       doctest::Contains("model.kind = \"lenet\" does not go with input"), InputError);
  task.recipe.model.kind = "tabel";
  CHECK_THROWS_WITH_AS(task::make_network(task), doctest::Contains("did you mean 'table'"), InputError);
}

TEST_CASE("what is predicted at each place goes alone") {
  task::Task task;
  auto& rows = put<FakeInput>(task.inputs, "", Shape{2, 4});
  put<FakeClass>(task.outputs, "word", 3, 1, &rows);
  put<FakeNumber>(task.outputs, "price");
  CHECK_THROWS_WITH_AS(task::make_network(task),
                       doctest::Contains("outputs.word is predicted at each place of a row"), InputError);
}

TEST_CASE("filters are taken from samples as the architecture gets them") {
  class Doubled : public FakeInput {
   public:
    Doubled() : FakeInput("", {2}) {}
    std::vector<Tensor> graph(std::span<const Tensor> fields, bool) const override { return {fields[0] * 2}; }
    std::optional<Array> fitting(const task::Reading&) const override { return Array::full(f32, {3, 2}, 4); }
  };
  task::Task task;
  put<Doubled>(task.inputs);
  put<FakeClass>(task.outputs, "", 3);
  std::vector<Array> fitted;
  task.network =
      std::make_shared<task::Network>(task, nn::make_layers({"linear 3"}, {2}),
                                      std::vector<std::function<void(const Array&)>>{
                                          [&](const Array& samples) { fitted.push_back(samples); }});
  task::fit_network(task, {task.recipe, nullptr});
  REQUIRE(fitted.size() == 1);
  CHECK(fitted[0].identical(Array::full(f32, {3, 2}, 8)));
}
