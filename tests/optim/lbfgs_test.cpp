#include "optim/lbfgs.h"

#include <cmath>
#include <doctest/doctest.h>
#include <functional>

#include <millrace/error.h>

using namespace millrace;
using optim::Lbfgs;

namespace {

/// The value of a function, and its gradient.
using Measure = std::function<double(const std::vector<float>&, std::vector<double>&)>;

double rosenbrock(const std::vector<float>& x, std::vector<double>& gradient) {
  double value = 0;
  gradient.assign(x.size(), 0);
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    const double a = x[i], b = x[i + 1], off = b - a * a;
    value += 100 * off * off + (1 - a) * (1 - a);
    gradient[i] += -400 * a * off - 2 * (1 - a);
    gradient[i + 1] += 200 * off;
  }
  return value;
}

/// A bowl a thousand times as steep along its first axis as along its last one, around 3.
double long_bowl(const std::vector<float>& x, std::vector<double>& gradient) {
  double value = 0;
  gradient.assign(x.size(), 0);
  for (size_t i = 0; i < x.size(); ++i) {
    const double steep = std::pow(10.0, -3.0 * static_cast<double>(i) / static_cast<double>(x.size() - 1)),
                 off = static_cast<double>(x[i]) - 3;
    value += steep * off * off / 2;
    gradient[i] = steep * off;
  }
  return value;
}

/// How many measurements it took.
int64_t minimise(Lbfgs& lbfgs, const Measure& measure, int64_t most = 500) {
  std::vector<double> gradient;
  int64_t count = 0;
  for (; count < most && lbfgs.state() == Lbfgs::State::going; ++count) {
    const double value = measure(lbfgs.point(), gradient);
    lbfgs.measured(value, gradient);
  }
  return count;
}

}  // namespace

TEST_CASE("lbfgs finds the bottom of a bent valley, and of a long bowl") {
  for (const size_t size : {2, 10}) {
    std::vector<float> start(size, 1.0f);
    for (size_t i = 0; i < size; i += 2) start[i] = -1.2f;
    Lbfgs lbfgs({.history = 10, .tolerance = 1e-3}, start);
    CHECK(minimise(lbfgs, rosenbrock) < 150);
    CHECK(lbfgs.state() == Lbfgs::State::converged);
    CHECK(lbfgs.largest() <= 1e-3);
    for (const float x : lbfgs.best()) CHECK(x == doctest::Approx(1).epsilon(2e-3));
  }
  Lbfgs bowl({.history = 10, .tolerance = 1e-6}, std::vector<float>(20, 0.0f));
  CHECK(minimise(bowl, long_bowl) < 150);
  CHECK(bowl.state() == Lbfgs::State::converged);
  for (const float x : bowl.best()) CHECK(x == doctest::Approx(3).epsilon(1e-3));
}

TEST_CASE("lbfgs comes back from where the loss is not finite, and never takes a worse point") {
  // A logarithm's domain ends at 0, right behind the minimum at 0.01.
  const Measure steep = [](const std::vector<float>& x, std::vector<double>& gradient) {
    const double at = x[0];
    gradient = {1 - 0.01 / at};
    return at - 0.01 * std::log(at);
  };
  Lbfgs lbfgs({.history = 5, .tolerance = 1e-5}, {0.5f});
  std::vector<double> gradient;
  double best = INFINITY;
  bool strayed = false;
  for (int i = 0; i < 200 && lbfgs.state() == Lbfgs::State::going; ++i) {
    const double value = steep(lbfgs.point(), gradient);
    strayed = strayed || !std::isfinite(value);
    lbfgs.measured(value, gradient);
    CHECK(lbfgs.best_loss() <= best + 1e-6 * std::abs(best));
    best = lbfgs.best_loss();
  }
  CHECK(strayed);
  CHECK(lbfgs.state() == Lbfgs::State::converged);
  CHECK(lbfgs.best()[0] == doctest::Approx(0.01).epsilon(1e-3));
}

TEST_CASE("lbfgs ends where its digits do, and says so") {
  // A loss of few digits, and a gradient that never becomes 0.
  const Measure rounded = [](const std::vector<float>& x, std::vector<double>& gradient) {
    const double at = x[0];
    gradient = {at >= 0 ? at + 0.1 : at - 0.1};
    return 1 + std::abs(at) * 0.1 + at * at / 2;
  };
  Lbfgs lbfgs({.history = 5, .tolerance = 1e-6}, {1.0f});
  CHECK(minimise(lbfgs, rounded) < 200);
  CHECK(lbfgs.state() == Lbfgs::State::stalled);
  CHECK(std::abs(lbfgs.best()[0]) < 1e-3);
}

TEST_CASE("lbfgs goes on from its arrays as if it had never stopped") {
  const std::vector<float> start = {-1.2f, 1, -1.2f, 1};
  Lbfgs whole({.history = 3, .tolerance = 1e-4}, start);
  const int64_t count = minimise(whole, rosenbrock);
  for (int64_t stop = 0; stop < count; stop += 5) {
    Lbfgs first({.history = 3, .tolerance = 1e-4}, start);
    minimise(first, rosenbrock, stop);
    Lbfgs second({.history = 3, .tolerance = 1e-4}, start);
    second.restore(first.arrays());
    CHECK(second.point() == first.point());
    CHECK(minimise(second, rosenbrock) == count - stop);
    CHECK(second.best() == whole.best());
  }
  Lbfgs other({.history = 3, .tolerance = 1e-4}, {1.0f});
  CHECK_THROWS_WITH_AS(other.restore(whole.arrays()), doctest::Contains("does not fit"), InputError);
}
