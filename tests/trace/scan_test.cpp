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
