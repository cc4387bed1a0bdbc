// LSTM and GRU against values stored from PyTorch.
#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/nn.h>

#include "support/random_graph.h"

using namespace millrace;

namespace {

struct Stored {
  std::string name;
  Shape shape;
  std::vector<double> values, gradient;  // of results: the weights of the sum that is differentiated
};

struct Case {
  std::string name;
  bool lstm;
  int64_t in, hidden;
  size_t states;  // given; 0: from zeros
  nn::RecurrentOptions options;
  std::vector<Stored> inputs, results;
  std::vector<double> lengths = {};  // of padded sequences
};

const std::vector<Case> cases = {
#include "nn/recurrent_values.inc"
};

std::shared_ptr<nn::Recurrent> make(const Case& c) {
  if (c.lstm) return std::make_shared<nn::LSTM>(c.in, c.hidden, c.options);
  return std::make_shared<nn::GRU>(c.in, c.hidden, c.options);
}

Tensor tensor(const Shape& shape, const std::vector<double>& values) { return Array::of(f32, shape, values); }

}  // namespace

TEST_CASE("recurrent layers give PyTorch's outputs, states and gradients") {
  REQUIRE(cases.size() >= 12);
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto layer = make(c);
    CHECK(layer->parameters().size() == c.inputs.size() - 1 - c.states);
    std::vector<Tensor> arguments;
    for (const Stored& input : c.inputs) arguments.push_back(tensor(input.shape, input.values));
    const auto run = [&](std::span<const Tensor> at) {
      for (size_t k = 1 + c.states; k < c.inputs.size(); ++k) {
        Tensor* parameter = layer->find(c.inputs[k].name);
        REQUIRE_MESSAGE(parameter, c.inputs[k].name);
        *parameter = at[k];
      }
      const Tensor lengths =
          c.lengths.empty() ? Tensor()
                            : Tensor(Array::of(i64, {static_cast<int64_t>(c.lengths.size())}, c.lengths));
      const nn::Recurrent::Result result = layer->run(at[0], at.subspan(1, c.states), lengths);
      std::vector<Tensor> all = {result.output};
      all.insert(all.end(), result.state.begin(), result.state.end());
      return all;
    };
    const std::vector<Tensor> results = run(arguments);
    REQUIRE(results.size() == c.results.size());
    for (size_t r = 0; r < results.size(); ++r)
      CHECK(test::difference(results[r].to_array(), Array::of(f32, c.results[r].shape, c.results[r].values)) <
            1e-5);
    const auto loss = [&](std::span<const Tensor> at) {
      const std::vector<Tensor> outputs = run(at);
      Tensor total = Tensor::zeros({});
      for (size_t r = 0; r < outputs.size(); ++r)
        total = total + sum(outputs[r] * tensor(c.results[r].shape, c.results[r].gradient));
      return total;
    };
    const ValueAndGradients found = value_and_gradients(loss, arguments);
    for (size_t k = 0; k < c.inputs.size(); ++k) {
      CAPTURE(c.inputs[k].name);
      CHECK(test::difference(found.gradients[k].to_array(),
                             Array::of(f32, c.inputs[k].shape, c.inputs[k].gradient)) < 1e-5);
    }
  }
}

TEST_CASE("recurrent layers say what does not fit") {
  nn::LSTM lstm(3, 4);
  lstm.initialise(1);
  const auto message = [&](const Tensor& x, std::vector<Tensor> state) {
    try {
      lstm.run(x, state);
    } catch (const TypeError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(message(Tensor::zeros({5, 2, 4}), {}).find("[length, N, 3] expected") != std::string::npos);
  CHECK(message(Tensor::zeros({5, 3}), {}).find("[length, N, 3] expected") != std::string::npos);
  CHECK(message(Tensor::zeros({5, 2, 3}), {Tensor::zeros({1, 2, 4})}).find("2 states is given 1") !=
        std::string::npos);
  CHECK(message(Tensor::zeros({5, 2, 3}), {Tensor::zeros({1, 2, 4}), Tensor::zeros({1, 3, 4})})
            .find("[1, 2, 4] expected") != std::string::npos);
  CHECK_THROWS_WITH_AS(lstm.run(Tensor::zeros({5, 2, 3}), {}, Tensor::zeros({3}, i64)),
                       doctest::Contains("lengths i64[3] given, i64 [2] expected"), TypeError);
  CHECK_THROWS_AS(nn::GRU(0, 4), InputError);
}

TEST_CASE("parameters of recurrent layers are drawn from U(±1/sqrt(hidden))") {
  nn::GRU gru(30, 16);
  gru.initialise(3);
  for (const nn::Named& named : gru.parameters()) {
    const std::vector<double> values = named.tensor->to_array().to_doubles();
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    CHECK(*low >= -0.25);
    CHECK(*high <= 0.25);
    CHECK(*high - *low > 0.35);
  }
}
