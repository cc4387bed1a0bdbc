#include <atomic>
#include <cmath>
#include <doctest/doctest.h>
#include <thread>
#include <vector>

#include <millrace/error.h>
#include <millrace/tensor.h>

#include "autodiff/gradient.h"
#include "support/codegen_support.h"
#include "trace/compiled_segment.h"
#include "trace/linearise.h"
#include "trace/node.h"

using namespace millrace;

TEST_CASE("tensors compute when they are read, with broadcasting and numbers") {
  const Tensor a = Tensor::of({2, 3}, {1, 2, 3, 4, 5, 6}), b = Tensor::of({3}, {10, 20, 30});
  const Tensor c = (a + b) * 2 - 1;
  CHECK_FALSE(c.is_concrete());
  CHECK(c.shape() == Shape{2, 3});
  CHECK(c.to_array().to_doubles() == std::vector<double>{21, 43, 65, 27, 49, 71});
  CHECK(c.is_concrete());
  CHECK(double(a.sum().item()) == 21);
  CHECK((1 - a).to_array().at(5) == -5);
  CHECK((12 / a).to_array().at(3) == 3);
  CHECK(where(a > 3, a, 0).to_array().to_doubles() == std::vector<double>{0, 0, 0, 4, 5, 6});
  CHECK(bool(max(a).item() > 5));
  CHECK(select_index(a, 1, -1).to_array().to_doubles() == std::vector<double>{3, 6});
  const Tensor both[] = {a, a + 6};
  CHECK(concat(both, 0).shape() == Shape{4, 3});
  CHECK(slice(a, 1, 1, 3).to_array().to_doubles() == std::vector<double>{2, 3, 5, 6});
  CHECK(pad(b, {{1, 0}}, 7).to_array().to_doubles() == std::vector<double>{7, 10, 20, 30});
}

TEST_CASE("equal computations on other values share one compiled graph, other structures do not") {
  const auto compute = [](double x, const Shape& shape, double factor) {
    return double((Tensor(Array::full(f32, shape, x)) * factor).sum().item());
  };
  compute(1, {3}, 2.5);
  const int64_t compiled = trace::executable_cache_counts().compiled;
  CHECK(compute(2, {3}, 2.5) == 15);
  CHECK(trace::executable_cache_counts().compiled == compiled);
  CHECK(compute(2, {3}, 3.5) == 21);
  CHECK(compute(2, {4}, 2.5) == 20);
  CHECK(trace::executable_cache_counts().compiled == compiled + 2);
}

TEST_CASE(
    "values that are still referred to are kept when something after them is read, and their graphs go") {
  Tensor x = Tensor::of({2}, {1, 1});
  Tensor y = x;
  std::weak_ptr<TensorNode> middle;
  const int64_t before = trace::executable_cache_counts().compiled;
  for (int i = 0; i < 20; ++i) {
    Tensor doubled = y * 2;
    if (i == 10) middle = doubled.node();
    y = doubled + 1;
    CHECK(double(y.sum().item()) > 0);
    CHECK(y.is_concrete());
    CHECK(y.node()->operands.empty());
  }
  CHECK(middle.expired());
  CHECK(y.to_array().at(0) == 2 * (1 << 20) - 1);
  // Every round is the same graph, not a longer one.
  CHECK(trace::executable_cache_counts().compiled - before <= 2);
}

TEST_CASE("compiled graphs are kept up to a number, those used last") {
  const Tensor x = Tensor::of({1}, {2});
  const auto times = [&](int i) { return double((x * (i + 0.5)).sum().item()); };
  const auto capacity = static_cast<int>(trace::executable_cache_capacity);
  for (int i = 0; i < capacity + 20; ++i) {
    CHECK(times(i) == 2 * i + 1);
    times(0);  // stays, being used
  }
  CHECK(trace::executable_cache_counts().size == trace::executable_cache_capacity);
  const int64_t compiled = trace::executable_cache_counts().compiled;
  CHECK(times(0) == 1);
  CHECK(times(capacity) == 2 * capacity + 1);
  CHECK(trace::executable_cache_counts().compiled == compiled);
  CHECK(times(1) == 3);  // was dropped
  CHECK(trace::executable_cache_counts().compiled == compiled + 1);
}

TEST_CASE("a chain of very many operations can be dropped") {
  Tensor y = Tensor::ones({1});
  for (int i = 0; i < 200'000; ++i) y = y + 1;
  y = Tensor();
  CHECK_FALSE(y.defined());
}

TEST_CASE("operations know a call's place from a layer's name, whatever it looks like, and so do gradients") {
  const Tensor x = Tensor::symbol("x", {f32, {}});
  Tensor y = x * x;
  {
    const trace::LayerScope layer("model.cpp:7");
    y = exp(y);
  }
  trace::Captured captured = trace::capture({&x, 1}, {&y, 1});
  Graph& graph = captured.graph;
  const Value from[] = {captured.value_of(x)};
  graph.set_outputs(gradients(graph, captured.value_of(y), from));
  int calls[3] = {}, layers[3] = {};  // of each phase
  for (int i = 0; i < graph.size(); ++i) {
    const Origin& origin = graph.node(i).origin;
    CHECK(origin.call == origin.layer.str().starts_with("tensor_test.cpp:"));
    CHECK(origin.repeated(Phase::backward).call == origin.call);
    calls[static_cast<int>(origin.phase)] += origin.call;
    layers[static_cast<int>(origin.phase)] += origin.layer == "model.cpp:7";
  }
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    CHECK(calls[static_cast<int>(phase)] > 0);
    CHECK(layers[static_cast<int>(phase)] > 0);
  }
  CHECK(Graph::parse(graph.str()) == graph);
}

TEST_CASE("axes count from the end, and one matrix is multiplied with all of a stack, turned or not") {
  const Tensor x(random_array({f32, {2, 3, 4}}, 1)), w(random_array({f32, {3, 5}}, 2));
  CHECK(transpose(x, {-1, 0, 1}).to_array().identical(transpose(x, {2, 0, 1}).to_array()));
  const Array all = matmul(x, w, true).to_array();
  CHECK(all.shape() == Shape{2, 4, 5});
  for (int i = 0; i < 2; ++i) {
    const Array one = matmul(transpose(select_index(x, 0, i), {1, 0}), w).to_array();
    for (int64_t k = 0; k < one.count(); ++k) CHECK(all.at(20 * i + k) == doctest::Approx(one.at(k)));
  }
}

TEST_CASE("wrong operands are reported at once, with the operator, the types and the place") {
  const Tensor a = Tensor::ones({2, 3}), b = Tensor::ones({4, 5});
  CHECK_THROWS_WITH_AS(a + b, doctest::Contains("add(f32[2, 3], f32[4, 5])"), TypeError);
  CHECK_THROWS_WITH_AS(matmul(a, b), doctest::Contains("tensor_test.cpp:"), TypeError);
  CHECK_THROWS_AS(a + Tensor::ones({2, 3}, f64), TypeError);
  CHECK_THROWS_WITH_AS(bool(a > 0), doctest::Contains("read as one number"), TypeError);
  CHECK_THROWS_AS(a.dim(2), TypeError);
  CHECK_THROWS_AS(Tensor().sum(), TypeError);
  CHECK_THROWS_WITH_AS((Tensor::symbol("x", {f32, {2}}) + 1).to_array(), doctest::Contains("depends on 'x'"),
                       TypeError);
}

TEST_CASE("gradients of functions are tensors, and have gradients too") {
  const Tensor factor = Tensor::of({3}, {1, 1, 2});
  const auto f = [&](std::span<const Tensor> in) { return sum(in[0] * in[0] * in[0] * in[1] * factor); };
  const Tensor arguments[] = {Tensor::of({3}, {1, 2, 3}), Tensor::of({3}, {1, 0, 1}), Tensor::ones({2})};
  const auto first = value_and_gradients(f, arguments);
  CHECK(double(first.value.item()) == 55);
  CHECK(first.gradients[0].to_array().to_doubles() == std::vector<double>{3, 0, 54});
  CHECK(first.gradients[1].to_array().to_doubles() == std::vector<double>{1, 8, 54});
  CHECK(first.gradients[2].to_array().to_doubles() == std::vector<double>{0, 0});
  const auto second = value_and_gradients(
      [&](std::span<const Tensor> in) { return sum(value_and_gradients(f, in).gradients[0]); }, arguments);
  CHECK(second.gradients[0].to_array().to_doubles() == std::vector<double>{6, 0, 36});
  CHECK_THROWS_AS(value_and_gradients([](std::span<const Tensor> in) { return in[0] * 2; }, arguments),
                  TypeError);
  CHECK_THROWS_WITH_AS(
      value_and_gradients([](std::span<const Tensor> in) { return sum(in[0] * double(in[0].sum().item())); },
                          arguments),
      doctest::Contains("the host reads a value"), TypeError);
}

TEST_CASE("eager random numbers depend on the seed and the count of uses") {
  manual_seed(3);
  const Array a = random_normal({50}, next_random_key()).to_array(),
              b = random_normal({50}, next_random_key()).to_array();
  manual_seed(3);
  CHECK(random_normal({50}, next_random_key()).to_array().identical(a));
  CHECK_FALSE(a.identical(b));
}

TEST_CASE("tensors without a value, without memory or of impossible sizes are TypeErrors") {
  const Tensor none[] = {Tensor()};
  CHECK_THROWS_AS(evaluate(none), TypeError);
  CHECK_THROWS_AS(relu(none[0]), TypeError);
  CHECK_THROWS_AS(Tensor{Array()}, TypeError);
  CHECK_THROWS_AS((Tensor{Array({f32, {4}}, nullptr, nullptr)}), TypeError);
  CHECK_THROWS_AS(Tensor::symbol("x", {f32, {-2}}), TypeError);
  CHECK_THROWS_AS(Tensor::zeros({-1, 2}), TypeError);
  CHECK_THROWS_AS(iota(-3), TypeError);
  CHECK_THROWS_AS(random_uniform({-1, 3}, next_random_key()), TypeError);
  CHECK_THROWS_AS(Tensor::ones({2}).cast({Kind::unsigned_int, 24}), TypeError);
  CHECK_THROWS_AS(reshape(Tensor::ones({2, 3}), {-2, -3}), TypeError);
  const Tensor x = Tensor::ones({2});
  CHECK_THROWS_WITH_AS(millrace::apply("reshape", std::span(&x, 1)),
                       doctest::Contains("reshape needs the attribute 'shape'"), TypeError);
  CHECK_THROWS_AS(millrace::apply("relu", std::span(&x, 1), {{"slope", 1.0}}), TypeError);
  CHECK_THROWS_AS(millrace::apply("input", {}), TypeError);
  CHECK_THROWS_AS(value_and_gradients({}, std::span(&x, 1)), InputError);
}

TEST_CASE("a number that an integer tensor cannot hold is refused, not rounded") {
  const Tensor x = Tensor::of({2}, {1, 2}, i8);
  CHECK((x + 100).to_array().at(1) == 102);
  CHECK_THROWS_WITH_AS(x + 1000, doctest::Contains("1000 is not a value of i8; cast the tensor first"),
                       TypeError);
  CHECK_THROWS_AS(x * 0.5, TypeError);
  CHECK_THROWS_AS(x.cast(i32) + NAN, TypeError);
  CHECK_THROWS_AS(-1 + x.cast(u8), TypeError);
  CHECK((x.cast(f32) * 0.5).to_array().at(0) == 0.5);
}

TEST_CASE("relu passes NaN on, forward and backward") {
  const Tensor x = Tensor::of({4}, {NAN, -1, 0, 2});
  for (const char* target : {"cpu", "ref"}) {
    set_default_target(target);
    const auto result =
        value_and_gradients([](std::span<const Tensor> t) { return sum(relu(t[0]) * 3); }, std::span(&x, 1));
    const Array y = relu(x).to_array(), g = result.gradients[0].to_array();
    CHECK(std::isnan(y.at(0)));
    CHECK(y.at(1) == 0);
    CHECK(y.at(3) == 2);
    CHECK(std::isnan(result.value.to_array().at(0)));
    CHECK(g.to_doubles() == std::vector<double>{3, 0, 0, 3});
  }
  set_default_target("cpu");
}

TEST_CASE("threads that compute the same operations at once get the results of their own values") {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 200; ++i) {
        const double x = 1000 * t + i;
        const Array found = (Tensor::full({64}, x) * 2 + 1).to_array();
        for (int64_t k = 0; k < found.count(); ++k) wrong += found.at(k) != 2 * x + 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
