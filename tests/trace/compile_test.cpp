#include <doctest/doctest.h>

#include <millrace/compile.h>
#include <millrace/error.h>

#include "trace/compiled_segment.h"

using namespace millrace;

TEST_CASE("a function with a branch on a tensor is compiled once for each branch, and explains it") {
  int runs = 0, line = 0;
  const auto f = compile([&](const Tensor& x) {
    ++runs;
    line = __LINE__ + 1;
    if (x.sum() < 0) return -x;
    return squeeze(x);
  });
  const Tensor positive = Tensor::of({1, 3}, {1, 2, 3}), negative = Tensor::of({1, 3}, {1, -2, -3});
  for (int i = 0; i < 3; ++i) {
    const Tensor y = f(positive);
    CHECK(y.shape() == Shape{3});
    CHECK(y.to_array().to_doubles() == std::vector<double>{1, 2, 3});
    const Tensor z = f(negative);
    CHECK(z.shape() == Shape{1, 3});
    CHECK(z.to_array().to_doubles() == std::vector<double>{-1, 2, 3});
  }
  CHECK(runs == 2);
  CHECK(f.counts().calls == 6);
  CHECK(f.counts().recordings == 2);
  CHECK(f.counts().segments == 3);  // the sum and comparison, and one for each branch
  const std::string explained = f.explain();
  CAPTURE(explained);
  CHECK(explained.find("guard: inputs (f32[1, 3])") != std::string::npos);
  CHECK(explained.find("break at compile_test.cpp:" + std::to_string(line) + ": the host reads a bool") !=
        std::string::npos);
  CHECK(explained.find("when it is true") != std::string::npos);
  CHECK(explained.find("when it is false") != std::string::npos);
  CHECK(explained.find("call 2: recorded again: a bool read at") != std::string::npos);
}

TEST_CASE("other shapes, dtypes and numbers of inputs are recorded anew, the same are not") {
  const CompiledFunction f([](std::span<const Tensor> x) {
    Tensor y = x[0];
    for (size_t i = 1; i < x.size(); ++i) y = y + x[i];
    return std::vector<Tensor>{y};
  });
  const auto call = [&](const std::vector<Tensor>& inputs) { return f(inputs)[0].to_array().at(0); };
  CHECK(call({Tensor::of({2}, {1, 2})}) == 1);
  CHECK(call({Tensor::of({2}, {1, 2}), Tensor::of({2}, {4, 4})}) == 5);
  CHECK(call({Tensor::of({3}, {7, 2, 1})}) == 7);
  CHECK(call({Tensor::of({2}, {3, 2}, f64)}) == 3);
  CHECK(call({Tensor::of({2}, {9, 2})}) == 9);
  CHECK(f.counts().recordings == 4);
  CHECK(f.explain().find("input 0 is f64[2] instead of f32[3]") != std::string::npos);
  CHECK(f.explain().find("2 inputs instead of 1") != std::string::npos);
  for (int64_t n = 1; n < 40; ++n) call({Tensor::ones({n})});
  CHECK(f.counts().guards == static_cast<int64_t>(CompiledFunction::guard_capacity));
}

TEST_CASE("a number from a tensor stays in the graph in arithmetic, and splits it when C++ reads it") {
  const auto stays = compile([](const Tensor& x) { return x * x.sum().item() * 2; });
  CHECK(stays(Tensor::of({2}, {1, 2})).to_array().at(1) == 12);
  CHECK(stays(Tensor::of({2}, {3, 2})).to_array().at(0) == 30);
  CHECK(stays.counts().recordings == 1);
  CHECK(stays.counts().segments == 1);

  // The number of rounds depends on a value; the segments are found again by structure.
  const auto reads = compile([](const Tensor& x) {
    const double rounds = x.sum().item();
    Tensor y = x;
    for (int i = 0; i < static_cast<int>(rounds); ++i) y = y + 1;
    return y;
  });
  CHECK(reads(Tensor::of({2}, {1, 2})).to_array().at(0) == 4);
  CHECK(reads(Tensor::of({2}, {0, 3})).to_array().at(0) == 3);
  CHECK(reads.counts().recordings == 1);
  CHECK(reads(Tensor::of({2}, {0, 1})).to_array().at(0) == 1);
  CHECK(reads.counts().recordings == 2);
  CHECK(reads.explain().find("the host reads a number") != std::string::npos);
  const int64_t compiled = trace::executable_cache_counts().compiled;
  for (int i = 4; i < 30; ++i) CHECK(reads(Tensor::of({2}, {0, double(i)})).to_array().at(0) == i);
  const int64_t after = trace::executable_cache_counts().compiled;
  CHECK(after - compiled == 26);  // one tail for each number of rounds, and never the sum again
  for (int i = 4; i < 30; ++i) CHECK(reads(Tensor::of({2}, {0, double(i)})).to_array().at(0) == i);
  CHECK(trace::executable_cache_counts().compiled == after);
  CHECK(reads.counts().segments <= 1 + static_cast<int64_t>(CompiledFunction::continuation_capacity));
}

TEST_CASE(
    "several reads, captured constants, views of earlier values and several results work on all paths") {
  const Tensor weight = Tensor::of({2, 2}, {1, 2, 3, 4});
  const auto f = compile([weight](const Tensor& x, const Tensor& y) {
    const Tensor product = matmul(x, weight), shifted = product + 1;
    Tensor result = product;
    if (product.sum() > 0) result = result * 2;
    if (y.mean() > 0) result = result + shifted;  // computed before the first read, used after the second
    return std::vector<Tensor>{result, x, weight};
  });
  const auto expected = [](double x0, double x1, double y) {
    double p0 = x0 + 3 * x1, r = p0;
    if (p0 + 2 * x0 + 4 * x1 > 0) r *= 2;
    if (y > 0) r += p0 + 1;
    return r;
  };
  for (int round = 0; round < 2; ++round)
    for (const double sign : {1.0, -1.0})
      for (const double y : {1.0, -1.0}) {
        const auto results = f(Tensor::of({1, 2}, {sign, sign * 2}), Tensor::of({1}, {y}));
        CHECK(results[0].to_array().at(0) == expected(sign, sign * 2, y));
        CHECK(results[1].to_array().at(1) == sign * 2);
        CHECK(results[2].to_array().at(3) == 4);
      }
  CHECK(f.counts().recordings == 4);
  CHECK(f.explain().find("captured constants") != std::string::npos);
}

TEST_CASE("compiled functions are inlined where they are called by others, and check that they are pure") {
  const auto inner = compile([](const Tensor& x) { return x * 2; });
  const auto outer = compile([inner](const Tensor& x) { return inner(x) + 1; });
  CHECK(outer(Tensor::of({1}, {3})).to_array().at(0) == 7);
  CHECK(inner.counts().calls == 0);
  CHECK(inner(Tensor::symbol("x", {f32, {5}})).shape() == Shape{5});

  int calls = 0;
  const auto impure = compile([&calls](const Tensor& x) {
    const Tensor y = ++calls % 2 ? x + 1 : x * 3 - 1;
    return y.sum() > 0 ? y : -y;
  });
  impure(Tensor::of({1}, {5}));
  CHECK_THROWS_WITH_AS(impure(Tensor::of({1}, {-5})), doctest::Contains("computed something else"),
                       TypeError);
}

TEST_CASE("compiling nothing, or calling with nothing, is an error") {
  CHECK_THROWS_AS(CompiledFunction{CompiledFunction::Function()}, InputError);
  const auto f = compile([](const Tensor& x) { return x + 1; });
  CHECK_THROWS_AS(f(Tensor()), TypeError);
}
