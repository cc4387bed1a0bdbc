// Optimisers on tables of which a batch reads some rows.
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <millrace/nn.h>
#include <millrace/operator.h>
#include <millrace/optim.h>
#include <millrace/random.h>

#include "support/stored_steps.h"

using namespace millrace;
using namespace millrace::testing;

namespace {

const Stored& stored_rows(const std::string& name) {
  static const StoredValues all({
#include "optim/reference_values.inc"
  });
  return all.at(name);
}

optim::StepResult squared_error_of_rows(nn::Module& model, std::span<const Tensor> inputs) {
  return {mse_loss(model(inputs[0]), inputs[1])};
}

std::unique_ptr<optim::TrainStep> table_step(const std::shared_ptr<nn::Embedding>& table, int64_t ids,
                                             int64_t width,
                                             std::shared_ptr<const optim::Optimizer> optimizer) {
  return std::make_unique<optim::TrainStep>(
      table, std::vector<optim::TensorSpec>{{"ids", {i64, {ids}}}, {"target", {f32, {ids, width}}}},
      squared_error_of_rows, std::move(optimizer));
}

std::vector<double> part(const std::vector<double>& values, size_t i, size_t count) {
  return {values.begin() + static_cast<std::ptrdiff_t>(i * count),
          values.begin() + static_cast<std::ptrdiff_t>((i + 1) * count)};
}

std::string ops_of(const Graph& graph) {
  std::string names;
  for (int i = 0; i < graph.size(); ++i) names += std::string(graph.node(i).op->name) + " ";
  return names;
}

}  // namespace

TEST_CASE("optimisers update tables by rows as PyTorch's do") {
  struct Case {
    std::string name;
    double lr;
    std::shared_ptr<const optim::Optimizer> optimizer;
    bool by_rows;
  };
  const std::vector<Case> cases = {
      {"rows sgd", 0.3, optim::sgd(), true},
      {"rows sgd clip", 0.3, optim::sgd({.common = {.clip_norm = 0.4}}), true},
      {"rows adagrad", 0.3, optim::adagrad(), true},
      {"rows adagrad clip", 0.3, optim::adagrad({.common = {.clip_norm = 0.4}}), true},
      {"rows lazy adam", 0.1, optim::adam({.common = {.lazy = true}}), true},
      {"rows adam", 0.1, optim::adam(), false},
      {"rows adamw clip", 0.1, optim::adamw({.common = {.weight_decay = 0.1, .clip_norm = 0.4}}), false}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto table = std::make_shared<nn::Embedding>(24, 3);
    *table->parameters()[0].tensor = Array::of(f32, {24, 3}, stored_rows("table").values);
    const auto step = table_step(table, 5, 3, c.optimizer);
    CHECK((ops_of(step->graph()).find("scatter_rows") != std::string::npos) == c.by_rows);
    const Stored& expected = stored_rows(c.name);
    for (size_t i = 0; i < expected.curve.size(); ++i) {
      step->bind_input(0, Array::of(i64, {5}, part(stored_rows("table ids").values, i, 5)));
      step->bind_input(1, Array::of(f32, {5, 3}, part(stored_rows("table target").values, i, 15)));
      step->run(c.lr);
      CHECK(step->loss() == doctest::Approx(expected.curve[i]).epsilon(2e-5));
    }
    const std::vector<double> values = table->parameters()[0].tensor->to_array().to_doubles();
    for (size_t i = 0; i < values.size(); ++i)
      CHECK(values[i] == doctest::Approx(expected.values[i]).epsilon(1e-4).scale(1));
  }
}

namespace {

/// Trains a table for some steps on random ids and returns it.
Array trained(std::shared_ptr<const optim::Optimizer> optimizer, int64_t rows, int64_t width, int64_t ids,
              int64_t* arena_bytes = nullptr) {
  const auto table = std::make_shared<nn::Embedding>(rows, width);
  table->initialise(3);
  const auto step = table_step(table, ids, width, std::move(optimizer));
  if (arena_bytes) *arena_bytes = step->program().arena_bytes();
  RandomStream random(11, 5);
  for (int s = 0; s < 3; ++s) {
    for (int64_t i = 0; i < ids; ++i)
      step->input(0).set_int(i, random.below(static_cast<uint32_t>(i % 3 == 0 ? 20 : rows)));
    for (int64_t i = 0; i < ids * width; ++i) step->input(1).set(i, random.uniform() - 0.5);
    step->run(0.01);
    CHECK(step->sound());
  }
  return table->parameters()[0].tensor->to_array().clone();
}

/// Switches passes off while the object lives.
struct DisabledPasses {
  explicit DisabledPasses(const char* passes) { setenv("MILLRACE_DISABLE", passes, 1); }
  ~DisabledPasses() { unsetenv("MILLRACE_DISABLE"); }
};

}  // namespace

TEST_CASE("the dense update of a large table reads its gradient as rows, and gives the same bits") {
  const auto optimizers = std::vector<std::shared_ptr<const optim::Optimizer>>{
      optim::adamw({.common = {.weight_decay = 0.1}}), optim::sgd({.momentum = 0.9}),
      optim::adam({.common = {.weight_decay = 0.1, .clip_value = 1e-5}})};
  for (const auto& optimizer : optimizers) {
    const int64_t rows = 70001, width = 17, ids = 300;
    int64_t sparse_bytes = 0, dense_bytes = 0;
    const Array sparse = trained(optimizer, rows, width, ids, &sparse_bytes);
    const DisabledPasses disabled("sparse");
    const Array dense = trained(optimizer, rows, width, ids, &dense_bytes);
    CHECK(sparse.identical(dense));
    CHECK(dense_bytes >= rows * width * 4);
    CHECK(sparse_bytes < rows * 4 * 3);
  }
}

TEST_CASE("clipping by norm sees the same norm over rows as over the dense gradient") {
  const auto optimizer = optim::adamw({.common = {.clip_value = 1e-4, .clip_norm = 1e-4}});
  int64_t bytes = 0;
  const Array sparse = trained(optimizer, 70001, 17, 300, &bytes);
  CHECK(bytes < 70001 * 17 * 2);
  const DisabledPasses disabled("sparse");
  const Array dense = trained(optimizer, 70001, 17, 300);
  double worst = 0;
  for (int64_t i = 0; i < dense.count(); ++i) worst = std::max(worst, std::fabs(sparse.at(i) - dense.at(i)));
  CHECK(worst < 1e-6);
}

TEST_CASE("rows that no batch reads keep their bits, and lazy momentum leaves their state alone") {
  for (const auto& optimizer : std::vector<std::shared_ptr<const optim::Optimizer>>{
           optim::adamw({.common = {.weight_decay = 0.1, .lazy = true}}), optim::adagrad(),
           optim::sgd({.momentum = 0.9, .common = {.lazy = true}})}) {
    const auto table = std::make_shared<nn::Embedding>(50, 4);
    table->initialise(3);
    const Array before = table->parameters()[0].tensor->to_array().clone();
    const auto step = table_step(table, 6, 4, optimizer);
    const std::vector<std::vector<double>> batches = {{1, 7, 7, 1, 49, 7}, {3, 3, 3, 3, 3, 3}};
    std::vector<Array> states;
    for (const auto& ids : batches) {
      states.clear();
      for (const auto& [name, state] : step->state()) states.push_back(state.clone());
      step->bind_input(0, Array::of(i64, {6}, ids));
      for (int64_t i = 0; i < 24; ++i) step->input(1).set(i, static_cast<double>(i) + 1);
      step->run(0.1);
    }
    const Array after = table->parameters()[0].tensor->to_array();
    for (int64_t row = 0; row < 50; ++row) {
      const bool read = row == 1 || row == 7 || row == 49 || row == 3;
      for (int64_t k = 0; k < 4; ++k) CHECK((after.at(row * 4 + k) == before.at(row * 4 + k)) == !read);
      const auto now = step->state();
      for (size_t s = 0; s < now.size(); ++s)
        for (int64_t k = 0; k < 4; ++k)
          CHECK((now[s].second.at(row * 4 + k) == states[s].at(row * 4 + k)) == (row != 3));
    }
  }
}

TEST_CASE("a step on a table of ten million rows needs no memory of the table's size") {
  const int64_t rows = 10'000'000;
  const auto table = std::make_shared<nn::Embedding>(rows, 1);
  *table->parameters()[0].tensor = Array(f32, {rows, 1});
  const auto step = table_step(table, 1000, 1, optim::adam({.common = {.lazy = true}}));
  CHECK(step->program().arena_bytes() < 1 << 20);
  for (int64_t i = 0; i < 1000; ++i) step->input(0).set_int(i, i * 9999 + 1);
  for (int64_t i = 0; i < 1000; ++i) step->input(1).set(i, 1);
  const double first = [&] {
    step->run(0.1);
    return step->loss();
  }();
  for (int s = 0; s < 5; ++s) step->run(0.1);
  CHECK(step->loss() < first * 0.5);
}

TEST_CASE("two lookups of one table share one update by rows") {
  const auto make = [] {
    const auto table = std::make_shared<nn::Embedding>(40, 3);
    table->initialise(3);
    return table;
  };
  const optim::StepFunction twice = [](nn::Module& model, std::span<const Tensor> inputs) {
    return optim::StepResult{mse_loss(model(inputs[0]) * model(inputs[1]), inputs[2])};
  };
  const std::vector<optim::TensorSpec> inputs = {
      {"a", {i64, {4}}}, {"b", {i32, {4}}}, {"target", {f32, {4, 3}}}};
  const auto run = [&](const std::shared_ptr<nn::Embedding>& table, bool lazy) {
    optim::TrainStep step(table, inputs, twice, optim::sgd({.common = {.clip_norm = 0.3, .lazy = lazy}}));
    step.bind_input(0, Array::of(i64, {4}, std::vector<double>{1, 5, 5, 30}));
    step.bind_input(1, Array::of(i32, {4}, std::vector<double>{5, 5, 2, 1}));
    for (int64_t i = 0; i < 12; ++i) step.input(2).set(i, static_cast<double>(i));
    for (int s = 0; s < 4; ++s) step.run(0.2);
    CHECK((ops_of(step.graph()).find("scatter_rows") != std::string::npos));
    return table->parameters()[0].tensor->to_array();
  };
  const Array by_rows = run(make(), true);
  // The same on ref, whose target knows nothing of rows: the dense gradient written out.
  const auto dense = make();
  Array weight = dense->parameters()[0].tensor->to_array().clone();
  const std::vector<int> a = {1, 5, 5, 30}, b = {5, 5, 2, 1};
  for (int s = 0; s < 4; ++s) {
    std::vector<double> gradient(120, 0);
    double norm = 0;
    for (int i = 0; i < 4; ++i)
      for (int k = 0; k < 3; ++k) {
        const double x = weight.at(a[i] * 3 + k), y = weight.at(b[i] * 3 + k);
        const double error = 2 * (x * y - (i * 3 + k)) / 12;
        gradient[a[i] * 3 + k] += error * y;
        gradient[b[i] * 3 + k] += error * x;
      }
    for (const double g : gradient) norm += g * g;
    const double factor = std::min(1.0, 0.3 / (std::sqrt(norm) + 1e-6));
    for (int i = 0; i < 120; ++i) weight.set(i, weight.at(i) - 0.2 * factor * gradient[i]);
  }
  for (int i = 0; i < 120; ++i)
    CHECK(by_rows.at(i) == doctest::Approx(weight.at(i)).epsilon(1e-5).scale(0.1));
}
