#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <map>

#include <millrace/decoder.h>
#include <millrace/error.h>

using namespace millrace;

namespace {

const std::vector<float> kLogits = {0, 2, 1, -1, 2.5F, -3};

/// Of so many draws, each token's share.
std::map<int32_t, double> shares(const SampleOptions& options, const std::vector<int32_t>& before = {}) {
  std::map<int32_t, double> found;
  constexpr int draws = 20000;
  for (int place = 0; place < draws; ++place)
    found[sample_token(kLogits, before, options, 0, static_cast<uint64_t>(place))] += 1.0 / draws;
  return found;
}

}  // namespace

TEST_CASE("tokens come as often as the softmax of the logits says") {
  for (const double temperature : {0.5, 1.0, 2.0}) {
    CAPTURE(temperature);
    const auto found = shares({.temperature = temperature, .seed = 3});
    double sum = 0;
    for (const float logit : kLogits) sum += std::exp(logit / temperature);
    for (const auto& [id, share] : found)
      CHECK(share ==
            doctest::Approx(std::exp(kLogits[static_cast<size_t>(id)] / temperature) / sum).epsilon(0.08));
  }
}

TEST_CASE("top-k and top-p leave the most probable ones") {
  CHECK(sample_token(kLogits, {}, {}, 0, 0) == 4);
  const auto k = shares({.temperature = 1, .top_k = 2});
  CHECK(k.size() == 2);
  CHECK(k.at(4) == doctest::Approx(1 / (1 + std::exp(-0.5))).epsilon(0.03));
  // e^2.5 and e^2 are 0.826 of the sum, with e^1 0.94.
  CHECK(shares({.temperature = 1, .top_p = 0.82}).size() == 2);
  CHECK(shares({.temperature = 1, .top_p = 0.84}).size() == 3);
  CHECK(shares({.temperature = 1, .top_p = 1e-9}).size() == 1);
  // Of equal ones the first.
  const std::vector<float> equal = {1, 1, 1, 1};
  for (uint64_t place = 0; place < 50; ++place)
    CHECK(sample_token(equal, {}, {.temperature = 1, .top_k = 2}, 0, place) < 2);
}

TEST_CASE("tokens that were there become less probable, whatever their sign") {
  CHECK(sample_token(kLogits, std::vector<int32_t>{4, 4, 4}, {.repetition = 1.3}, 0, 0) ==
        1);  // 2.5 / 1.3 < 2
  CHECK(sample_token(kLogits, std::vector<int32_t>{4}, {.repetition = 1.2}, 0, 0) == 4);
  const std::vector<float> negative = {-1, -1.5F};
  CHECK(sample_token(negative, std::vector<int32_t>{0}, {.repetition = 2}, 0, 0) == 1);
  CHECK(sample_token(negative, std::vector<int32_t>{0}, {.repetition = 1}, 0, 0) == 0);
}

TEST_CASE("a draw is that of its seed, stream and place") {
  const auto drawn = [](uint64_t seed, uint64_t stream) {
    std::vector<int32_t> ids;
    for (uint64_t place = 0; place < 64; ++place)
      ids.push_back(sample_token(kLogits, {}, {.temperature = 1, .seed = seed}, stream, place));
    return ids;
  };
  CHECK(drawn(1, 0) == drawn(1, 0));
  CHECK(drawn(1, 0) != drawn(2, 0));
  CHECK(drawn(1, 0) != drawn(1, 1));
}

TEST_CASE("logits and options that are none are refused") {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinite = std::numeric_limits<float>::infinity();
  for (const SampleOptions& options : {SampleOptions{}, SampleOptions{.temperature = 1}}) {
    CHECK_THROWS_AS(sample_token(std::vector<float>{1, nan}, {}, options, 0, 0), InputError);
    CHECK_THROWS_AS(sample_token(std::vector<float>{1, infinite}, {}, options, 0, 0), InputError);
    CHECK_THROWS_AS(sample_token(std::vector<float>{-infinite, -infinite}, {}, options, 0, 0), InputError);
    CHECK(sample_token(std::vector<float>{-infinite, 1}, {}, options, 0, 0) == 1);
  }
  for (const SampleOptions& options :
       {SampleOptions{.temperature = -1}, SampleOptions{.temperature = nan}, SampleOptions{.top_k = -1},
        SampleOptions{.top_p = 0}, SampleOptions{.top_p = 1.5}, SampleOptions{.repetition = 0}})
    CHECK_THROWS_AS(check_sample_options(options), InputError);
}
