#include "train/lr_find.h"

#include <cmath>
#include <doctest/doctest.h>

using namespace millrace;

namespace {

/// From -1 to 1, without a pattern.
double scatter(int i) { return 2 * std::fmod(std::abs(std::sin(12.9898 * i)) * 43758.5453, 1) - 1; }

struct MadeSweep {
  std::vector<double> rates, losses;
};

/// Rates from 1e-7 to 10; the loss falls from 2 by how near the rate is to `best`, then rises
/// from `wall` on, with noise.
MadeSweep made_sweep(double best, double wall, double noise, int steps = 100) {
  MadeSweep made;
  double loss = 2;
  for (int i = 0; i < steps; ++i) {
    const double rate = 1e-7 * std::pow(1e8, i / (steps - 1.0)), off = std::log10(rate / best);
    loss -= 12.0 / steps * std::exp(-2 * off * off);
    double shown = loss;
    if (rate > wall) shown += 4 * (rate / wall - 1);
    made.rates.push_back(rate);
    made.losses.push_back(shown + noise * scatter(i));
  }
  return made;
}

}  // namespace

TEST_CASE("the steepest descent of a sweep is found, spikes and noise or not") {
  for (const double noise : {0.0, 0.02}) {
    MadeSweep made = made_sweep(3e-3, 1.0, noise);
    const train::RateFinding calm = train::judge_rates(made.rates, made.losses);
    REQUIRE(calm.suggested);
    CHECK(*calm.suggested == *calm.steepest);
    CHECK(std::abs(std::log10(*calm.steepest / 3e-3)) < 0.5);
    CHECK(calm.why.find("falls fastest") != std::string::npos);
    // One bad batch at a harmless rate, one lucky one.
    made.losses[30] = 50;
    made.losses[45] = 0.01;
    const train::RateFinding spiked = train::judge_rates(made.rates, made.losses);
    CHECK(std::abs(std::log10(*spiked.suggested / 3e-3)) < 0.5);
  }
}

TEST_CASE("of losses that scatter as much as they fall, a long sweep tells the descent") {
  for (const double best : {3e-4, 1e-3, 3e-3}) {
    CAPTURE(best);
    const MadeSweep made = made_sweep(best, 1.0, 1.5, 1600);
    const train::RateFinding found = train::judge_rates(made.rates, made.losses);
    REQUIRE(found.steepest);
    CHECK(std::abs(std::log10(*found.steepest / best)) < 0.7);
  }
}

TEST_CASE("where the loss diverges soon, a tenth of that rate is suggested, and it is said") {
  const MadeSweep made = made_sweep(0.1, 0.15, 0);
  const train::RateFinding found = train::judge_rates(made.rates, made.losses);
  REQUIRE(found.diverged);
  CHECK(*found.suggested == *found.diverged / 10);
  CHECK(found.why.find("a tenth of the rate at which the loss diverges") != std::string::npos);
  // A loss that stops being finite diverges there.
  MadeSweep broken = made_sweep(1e-2, 1e9, 0);
  broken.losses.resize(80);
  broken.losses.push_back(NAN);
  const train::RateFinding at = train::judge_rates(broken.rates, broken.losses);
  CHECK(*at.diverged == broken.rates[80]);
}

TEST_CASE("a sweep in which nothing is learnt suggests nothing") {
  MadeSweep flat;
  for (int i = 0; i < 60; ++i) {
    flat.rates.push_back(1e-7 * std::pow(1e6, i / 59.0));
    flat.losses.push_back(2 + 0.1 * scatter(i));
  }
  const train::RateFinding found = train::judge_rates(flat.rates, flat.losses);
  CHECK_FALSE(found.suggested);
  CHECK(found.why.find("neither falls clearly nor diverges") != std::string::npos);
  CHECK_FALSE(train::judge_rates(flat.rates, std::vector<double>{1, 2, INFINITY}).suggested);
}

TEST_CASE("a sweep ends where the loss is four times the best, smoothed") {
  std::vector<double> losses(30, 1.0);
  CHECK_FALSE(train::diverges(losses));
  losses.push_back(9);  // one batch
  CHECK_FALSE(train::diverges(losses));
  for (int i = 0; i < 8; ++i) losses.push_back(9);
  CHECK(train::diverges(losses));
  CHECK(train::diverges(std::vector<double>{1, NAN}));
}
