#include <cmath>
#include <doctest/doctest.h>

#include "task/fake_task.h"

using namespace millrace;
using testing::batch_dim;
using testing::FakeClass;
using testing::FakeInput;
using testing::FakeNumber;
using testing::put;

namespace {

Tensor labels(const Shape& shape, const std::vector<double>& values) { return Array::of(i64, shape, values); }
Tensor numbers(const Shape& shape, const std::vector<double>& values) {
  return Array::of(f32, shape, values);
}

double scalar(const Tensor& tensor) { return tensor.to_array().at(0); }

/// −log softmax of one row.
double cross_entropy_of(const std::vector<double>& logits, size_t row, size_t width, size_t label) {
  double sum = 0;
  for (size_t c = 0; c < width; ++c) sum += std::exp(logits[row * width + c]);
  return std::log(sum) - logits[row * width + label];
}

/// The same of a label of which a share is given to all alike.
double smoothed_cross_entropy(const std::vector<double>& logits, size_t row, size_t width, size_t label,
                              double smoothing) {
  double all = 0;
  for (size_t c = 0; c < width; ++c)
    all += cross_entropy_of(logits, row, width, c) / static_cast<double>(width);
  return (1 - smoothing) * cross_entropy_of(logits, row, width, label) + smoothing * all;
}

double right(const std::vector<double>& logits, size_t row, size_t width, size_t label) {
  size_t best = 0;
  for (size_t c = 1; c < width; ++c)
    if (logits[row * width + c] > logits[row * width + best]) best = c;
  return best == label;
}

}  // namespace

TEST_CASE("one plain output costs one mean loss") {
  task::Task task;
  put<FakeInput>(task.inputs, "", Shape{4});
  auto& output = put<FakeClass>(task.outputs, "", 3);
  task.recipe.model.layers = {"linear 3"};
  task::make_network(task);
  const std::vector<data::Field> fields = {{"x", {f32, {batch_dim(), 4}}}, {"target", {i64, {batch_dim()}}}};
  const Tensor arrays[] = {numbers({2, 4}, {1, 2, 3, 4, -1, 0, 1, 2}), labels({2}, {2, 0})};
  const auto result = task::step_function(task, fields)(*task.network, arrays);
  CHECK(output.means == 1);
  CHECK(output.rows == 0);
  const auto logits = task.network->logits({arrays, 1}, false)[0].to_array().to_doubles();
  CHECK(scalar(result.loss) ==
        doctest::Approx((cross_entropy_of(logits, 0, 3, 2) + cross_entropy_of(logits, 1, 3, 0)) / 2));
  REQUIRE(result.metrics.size() == 1);
  CHECK(result.metrics[0].first == "accuracy");
  CHECK(task::step_metrics(task) == std::vector<std::string>{"accuracy"});
}

TEST_CASE(
    "losses of several outputs are added with their weights, those of rows with theirs, mixed ones in "
    "shares, and smoothed ones are smoothed") {
  task::Task task;
  put<FakeInput>(task.inputs, "", Shape{4});
  put<FakeClass>(task.outputs, "animal", 3, 0.5).smoothing = 0.2;
  put<FakeNumber>(task.outputs, "price", 2);
  task::make_network(task);
  const Dim batch = batch_dim();
  // The order of a feed: inputs, targets, what is mixed in, weights.
  const std::vector<data::Field> fields = {{"x", {f32, {batch, 4}}},
                                           {"animal.target", {i64, {batch}}},
                                           {"price.target", {f32, {batch, 1}}},
                                           {"mixed.animal.target", {i64, {batch}}},
                                           {"mixed.price.target", {f32, {batch, 1}}},
                                           {"mix", {f32, {batch}}},
                                           {"weights", {f32, {batch}}}};
  const std::vector<size_t> animal = {2, 0}, other = {1, 0};
  const std::vector<double> price = {1.5, -2}, mixed = {0, 4}, share = {0.75, 0.75}, weight = {0.5, 3};
  const Tensor arrays[] = {numbers({2, 4}, {1, 2, 3, 4, -1, 0, 1, 2}),
                           labels({2}, {2, 0}),
                           numbers({2, 1}, price),
                           labels({2}, {1, 0}),
                           numbers({2, 1}, mixed),
                           numbers({2}, share),
                           numbers({2}, weight)};
  task.network->eval();
  const auto result = task::step_function(task, fields)(*task.network, arrays);
  const auto logits = task.network->logits({arrays, 1}, false);
  const auto first = logits[0].to_array().to_doubles(), second = logits[1].to_array().to_doubles();
  double animal_loss = 0, price_loss = 0, accuracy = 0, error = 0;
  for (size_t n = 0; n < 2; ++n) {
    const double kept = share[n], rest = 1 - kept;
    animal_loss += weight[n] *
                   (kept * smoothed_cross_entropy(first, n, 3, animal[n], 0.2) +
                    rest * smoothed_cross_entropy(first, n, 3, other[n], 0.2)) /
                   2;
    accuracy += (kept * right(first, n, 3, animal[n]) + rest * right(first, n, 3, other[n])) / 2;
    price_loss +=
        weight[n] * (kept * std::pow(second[n] - price[n], 2) + rest * std::pow(second[n] - mixed[n], 2)) / 2;
    error += (kept * std::abs(second[n] - price[n]) + rest * std::abs(second[n] - mixed[n])) / 2;
  }
  CHECK(scalar(result.loss) == doctest::Approx(0.5 * animal_loss + 2 * price_loss).epsilon(1e-5));
  const std::vector<std::string> names = {"animal.loss", "animal.accuracy", "price.loss", "price.mae"};
  CHECK(task::step_metrics(task) == names);
  const std::vector<double> values = {animal_loss, accuracy, price_loss, error};
  REQUIRE(result.metrics.size() == names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    CHECK(result.metrics[i].first == names[i]);
    CHECK(scalar(result.metrics[i].second) == doctest::Approx(values[i]).epsilon(1e-5));
  }
}

TEST_CASE("targets at places count where they are some, and by the weight of their row") {
  task::Task task;
  auto& input = put<FakeInput>(task.inputs, "", Shape{2, 4});
  put<FakeClass>(task.outputs, "", 3, 1, &input);
  task.network =
      std::make_shared<task::Network>(task, nn::Model{"linear", std::make_shared<nn::Linear>(4, 3), {}});
  task.network->initialise(1);
  const Dim batch = batch_dim();
  const std::vector<data::Field> fields = {{"x", {f32, {batch, 2, 4}}},
                                           {"targets", {i64, {batch, 2}}},
                                           {"counted", {f32, {batch, 2}}},
                                           {"weights", {f32, {batch}}}};
  std::vector<double> x;
  for (int i = 0; i < 16; ++i) x.push_back(std::sin(i));
  const double whole = 4.0 / 3;  // of 4 places 3 count
  const Tensor arrays[] = {numbers({2, 2, 4}, x), labels({2, 2}, {0, 2, 1, -1}),
                           numbers({2, 2}, {whole, whole, whole, 0}), numbers({2}, {1, 5})};
  const auto result = task::step_function(task, fields)(*task.network, arrays);
  const auto logits = task.network->logits({arrays, 1}, false)[0].to_array().to_doubles();
  const double loss = (cross_entropy_of(logits, 0, 3, 0) + cross_entropy_of(logits, 1, 3, 2) +
                       5 * cross_entropy_of(logits, 2, 3, 1)) /
                      3;
  CHECK(scalar(result.loss) == doctest::Approx(loss).epsilon(1e-5));
  const double accuracy = (right(logits, 0, 3, 0) + right(logits, 1, 3, 2) + right(logits, 2, 3, 1)) / 3;
  CHECK(scalar(result.metrics[0].second) == doctest::Approx(accuracy).epsilon(1e-5));
}
