#include <cmath>

#include <millrace/optim.h>

#include "base/format.h"
#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {
namespace {

class Nadam final : public Optimizer {
 public:
  explicit Nadam(NadamOptions o) : Optimizer(o.common), own_(std::move(o)) {
    check_moments(own_.beta1, own_.beta2, own_.epsilon);
    if (!(own_.beta1 <= kMostBeta)) fail<InputError>("nadam's first beta is at most {}", kMostBeta);
    if (!(own_.momentum_decay >= 0 && std::isfinite(own_.momentum_decay)))
      fail<InputError>("momentum_decay must be at least 0, not {}", own_.momentum_decay);
    // The same numbers for every step, whichever comes first: a resumed run must have them too.
    double product = 1;
    for (int64_t step = 1; product > kNothing; ++step) products_.push_back(product *= momentum(step));
  }

  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }

  /// What multiplies the gradient, the first moment, and the root of the second one.
  std::vector<double> scalars(int64_t step) const override {
    const double mu = momentum(step), next = momentum(step + 1), product = product_until(step);
    return {(1 - mu) / (1 - product), next / (1 - product * next),
            1 / std::sqrt(1 - std::pow(own_.beta2, static_cast<double>(step)))};
  }

  Value update(Update& u) const override {
    ops::Build b(u.graph);
    const Value parameter = decayed(u, own_.decoupled);
    update_moments(u, own_.beta1, own_.beta2);
    const Value root = b.add(b.mul(b.unary("sqrt", u.state[1]), u.scalars[2]), own_.epsilon);
    const Value direction = b.add(b.mul(u.gradient, u.scalars[0]), b.mul(u.state[0], u.scalars[1]));
    return b.sub(parameter, b.mul(b.div(direction, root), u.lr));
  }

 private:
  static constexpr double kNothing = 1e-20;    // beside 1
  static constexpr double kMostBeta = 0.9999;  // bounds the steps until the product is nothing

  double momentum(int64_t step) const {
    return own_.beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * own_.momentum_decay));
  }
  double product_until(int64_t step) const {
    const auto i = static_cast<size_t>(step) - 1;
    return i < products_.size() ? products_[i] : 0;
  }

  NadamOptions own_;
  std::vector<double> products_;  // of the momentum up to each step, until it is nothing
};

}  // namespace

std::shared_ptr<const Optimizer> nadam(const NadamOptions& options) {
  return std::make_shared<Nadam>(options);
}

MILLRACE_OPTIMIZER(nadam){
    .name = "nadam",
    .doc = "adam whose momentum looks one step ahead",
    .settings = {{"lr", "learning rate, which the schedule multiplies", 2e-3, 0},
                 {"betas", "decays of the first and second moment", std::vector<double>{0.9, 0.999}, 0,
                  0.9999999},
                 {"eps", "keeps the division by the second moment from zero", 1e-8, 1e-30, 1},
                 {"momentum_decay", "how soon the momentum reaches its full size", 4e-3, 0, 1e3},
                 {"decoupled", "weight decay does not go through the moments", false}},
    .make =
        [](const Settings& settings, Options common) {
          const auto [beta1, beta2] = betas_of(settings);
          return nadam({beta1, beta2, settings.number("eps"), settings.number("momentum_decay"),
                        settings.flag("decoupled"), std::move(common)});
        },
};

}  // namespace millrace::optim
