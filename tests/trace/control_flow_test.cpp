#include <doctest/doctest.h>

#include <millrace/compile.h>
#include <millrace/error.h>
#include <millrace/tensor.h>

using namespace millrace;

TEST_CASE("a scan of tensors runs its step for every position, and uses what it captures") {
  const Tensor xs = Tensor::of({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), factor = Tensor::of({2}, {1, 10});
  const Tensor start[] = {Tensor::zeros({2})};
  const auto step = [&](std::span<const Tensor> carries, std::span<const Tensor> slices) {
    const Tensor next = carries[0] + slices[0] * factor;
    return ScanResult{{next}, {next}};
  };
  const ScanResult forward = scan(step, start, std::span(&xs, 1));
  CHECK(forward.carries[0].to_array().to_doubles() == std::vector<double>{16, 200});
  CHECK(forward.stacked[0].to_array().to_doubles() == std::vector<double>{1, 20, 4, 60, 9, 120, 16, 200});
  const ScanResult backward = scan(step, start, std::span(&xs, 1), true);
  CHECK(backward.stacked[0].to_array().to_doubles() == std::vector<double>{16, 200, 15, 180, 12, 140, 7, 80});
}

TEST_CASE("gradients flow through a scan of tensors, to what it captures too, and can be taken twice") {
  const auto value = [](std::span<const Tensor> at) {
    const Tensor start[] = {at[0]};
    const ScanResult done = scan(
        [&](std::span<const Tensor> carries, std::span<const Tensor> slices) {
          return ScanResult{{carries[0] * at[2] + slices[0]}, {}};
        },
        start, at.subspan(1, 1));
    return sum(done.carries[0]);  // h·w³ + x0·w² + x1·w + x2
  };
  const Tensor arguments[] = {Tensor::of({1}, {2}), Tensor::of({3, 1}, {1, 3, 5}), Tensor::of({1}, {3})};
  const ValueAndGradients first = value_and_gradients(value, arguments);
  CHECK(first.value.to_array().at(0) == 77);
  CHECK(first.gradients[0].to_array().at(0) == 27);
  CHECK(first.gradients[1].to_array().to_doubles() == std::vector<double>{9, 3, 1});
  CHECK(first.gradients[2].to_array().at(0) == 63);  // 3·h·w² + 2·x0·w + x1
  const ValueAndGradients second = value_and_gradients(
      [&](std::span<const Tensor> at) { return sum(value_and_gradients(value, at).gradients[2]); },
      arguments);
  CHECK(second.gradients[2].to_array().at(0) == 38);  // 6·h·w + 2·x0
}

TEST_CASE("a scan says what does not fit") {
  const Tensor xs = Tensor::zeros({4, 2}), start[] = {Tensor::zeros({2})};
  CHECK_THROWS_AS(scan(
                      [](auto carries, auto) {
                        return ScanResult{{carries[0]}, {}};
                      },
                      start, {}),
                  TypeError);
  CHECK_THROWS_AS(scan(
                      [](auto, auto slices) {
                        return ScanResult{{}, {slices[0]}};
                      },
                      start, std::span(&xs, 1)),
                  TypeError);
  CHECK_THROWS_AS(scan(
                      [](auto carries, auto) {
                        return ScanResult{{sum(carries[0])}, {}};
                      },
                      start, std::span(&xs, 1)),
                  TypeError);
}

TEST_CASE("a cond of tensors runs the branch that is chosen, and uses what both capture") {
  const Tensor x = Tensor::of({2}, {3, 4}), outside = x * 10;
  for (const bool first : {true, false}) {
    const Tensor chosen = Tensor::of({1}, {first ? 1.0 : -1.0});
    const std::vector<Tensor> results = cond(
        sum(chosen) > 0,
        [&] {
          return std::vector<Tensor>{outside + 1, x};
        },
        [&] {
          return std::vector<Tensor>{x * x, outside};
        });
    CHECK(results[0].to_array().to_doubles() ==
          (first ? std::vector<double>{31, 41} : std::vector<double>{9, 16}));
    CHECK(results[1].to_array().to_doubles() ==
          (first ? std::vector<double>{3, 4} : std::vector<double>{30, 40}));
  }
}

TEST_CASE("gradients flow through the branch of a cond that is run, and can be taken twice") {
  for (const bool first : {true, false}) {
    const Tensor x[] = {Tensor::of({2}, {3, 4})};
    const auto value = [&](std::span<const Tensor> at) {
      return sum(cond(
          sum(at[0]) > (first ? 0 : 100), [&] { return std::vector<Tensor>{at[0] * at[0] * at[0]}; },
          [&] { return std::vector<Tensor>{at[0] * 5}; })[0]);
    };
    CHECK(value_and_gradients(value, x).gradients[0].to_array().to_doubles() ==
          (first ? std::vector<double>{27, 48} : std::vector<double>{5, 5}));
    const auto slope = [&](std::span<const Tensor> at) {
      return sum(value_and_gradients(value, at).gradients[0]);
    };
    CHECK(value_and_gradients(slope, x).gradients[0].to_array().to_doubles() ==
          (first ? std::vector<double>{18, 24} : std::vector<double>{0, 0}));
  }
}

TEST_CASE("a while_loop of tensors runs until its condition says no, and counts its steps") {
  // Collatz: 6, 3, 10, 5, 16, 8, 4, 2, 1.
  const Tensor six[] = {Tensor(Array::scalar(i64, 6))}, one = Tensor(Array::scalar(i64, 1));
  const WhileCondition condition = [&](std::span<const Tensor> state) { return state[0] > one; };
  const WhileStep step = [&](std::span<const Tensor> state) {
    const Tensor half = state[0] / 2;
    const Tensor next = cond(
        equal(half * 2, state[0]), [&] { return std::vector<Tensor>{half}; },
        [&] { return std::vector<Tensor>{state[0] * 3 + 1}; })[0];
    return ScanResult{{next}, {state[0]}};
  };
  const WhileResult all = while_loop(condition, step, six, 10);
  CHECK(all.steps.to_array().at(0) == 8);
  CHECK(all.state[0].to_array().at(0) == 1);
  CHECK(all.stacked[0].to_array().to_doubles() == std::vector<double>{6, 3, 10, 5, 16, 8, 4, 2, 0, 0});
  const WhileResult some = while_loop(condition, step, six, 3);
  CHECK(some.steps.to_array().at(0) == 3);
  CHECK(some.state[0].to_array().at(0) == 5);
  const WhileResult free = while_loop(
      condition,
      [&](auto state) {
        return ScanResult{step(state).carries, {}};
      },
      six);
  CHECK(free.steps.to_array().at(0) == 8);
}

TEST_CASE("gradients flow through the steps of a while_loop that were run, where it has a limit") {
  const auto power = [](int64_t limit) {
    return [limit](std::span<const Tensor> at) {  // x³ · w, with w captured
      const Tensor state[] = {Tensor(Array::scalar(i64, 0)), at[0]};
      const WhileResult done = while_loop([](auto now) { return now[0] < Tensor(Array::scalar(i64, 2)); },
                                          [&](auto now) {
                                            return ScanResult{{now[0] + 1, now[1] * at[0]}, {now[1] * at[1]}};
                                          },
                                          state, limit);
      return sum(done.state[1] * at[1]) + sum(done.stacked[0]);
    };
  };
  // x³·w + x·w + x²·w, in one step of the two: x²·w + x·w.
  const Tensor at[] = {Tensor::of({1}, {2}), Tensor::of({1}, {5})};
  const ValueAndGradients found = value_and_gradients(power(6), at);
  CHECK(found.value.to_array().at(0) == 70);
  CHECK(found.gradients[0].to_array().at(0) == 85);  // (3·x² + 1 + 2·x)·w
  CHECK(found.gradients[1].to_array().at(0) == 14);
  CHECK(value_and_gradients(power(1), at).gradients[0].to_array().at(0) == 25);
  CHECK(value_and_gradients(power(0), at).gradients[0].to_array().at(0) == 5);
  const auto endless = [](std::span<const Tensor> x) {
    return sum(while_loop([](auto now) { return sum(now[0]) < 100; },
                          [](auto now) {
                            return ScanResult{{now[0] * 2}, {}};
                          },
                          x)
                   .state[0]);
  };
  CHECK_THROWS_WITH_AS(value_and_gradients(endless, std::span(at, 1)), doctest::Contains("limit"), TypeError);
}

TEST_CASE("conds and while_loops say what does not fit") {
  const Tensor x = Tensor::zeros({2}), yes = sum(x) < 1, state[] = {x};
  const auto gives = [](const Tensor& what) { return [what] { return std::vector<Tensor>{what}; }; };
  CHECK_THROWS_AS(cond(x, gives(x), gives(x)), TypeError);
  CHECK_THROWS_AS(cond(yes, gives(x), [] { return std::vector<Tensor>{}; }), TypeError);
  CHECK_THROWS_WITH_AS(cond(yes, gives(x), gives(sum(x))),
                       doctest::Contains("result 0 is f32[2] of one branch"), TypeError);
  const auto always = [&](auto) { return yes; };
  CHECK_THROWS_AS(while_loop([&](auto) { return x; },
                             [](auto now) {
                               return ScanResult{{now[0]}, {}};
                             },
                             state),
                  TypeError);
  int asked = 0;  // a condition that is none of what a step gives
  CHECK_THROWS_WITH_AS(while_loop([&](auto) { return asked++ == 0 ? yes : x; },
                                  [](auto now) {
                                    return ScanResult{{now[0]}, {}};
                                  },
                                  state),
                       doctest::Contains("the condition of while_loop must be bool[], but it is f32[2]"),
                       TypeError);
  CHECK_THROWS_AS(while_loop(
                      always,
                      [](auto) {
                        return ScanResult{{}, {}};
                      },
                      state),
                  TypeError);
  CHECK_THROWS_AS(while_loop(
                      always,
                      [](auto now) {
                        return ScanResult{{sum(now[0])}, {}};
                      },
                      state),
                  TypeError);
  CHECK_THROWS_WITH_AS(while_loop(
                           always,
                           [](auto now) {
                             return ScanResult{{now[0]}, {now[0]}};
                           },
                           state),
                       doctest::Contains("needs a limit"), TypeError);
}
