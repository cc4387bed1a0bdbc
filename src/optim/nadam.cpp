#include <cmath>

#include <millrace/optim.h>

#include "base/format.h"
#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {

std::shared_ptr<const Optimizer> nadam(const NadamOptions& o) {
  constexpr double most_beta = 0.9999;  // bounds the steps until the product is nothing
  check_moments(o.beta1, o.beta2, o.epsilon);
  if (!(o.beta1 <= most_beta)) fail<InputError>("nadam's first beta is at most {}", most_beta);
  if (!(o.momentum_decay >= 0 && std::isfinite(o.momentum_decay)))
    fail<InputError>("momentum_decay must be at least 0, not {}", o.momentum_decay);
  const auto momentum = [o](int64_t step) {
    return o.beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * o.momentum_decay));
  };
  // Of the momentum up to each step, until that is nothing beside 1. The same numbers for every step,
  // whichever comes first: a resumed run must have them too.
  std::vector<double> products;
  double product = 1;
  for (int64_t step = 1; product > 1e-20; ++step) products.push_back(product *= momentum(step));
  // What multiplies the gradient, the first moment, and the root of the second one.
  const auto scalars = [o, momentum, products](int64_t step) -> std::vector<double> {
    const auto i = static_cast<size_t>(step) - 1;
    const double mu = momentum(step), next = momentum(step + 1),
                 until = i < products.size() ? products[i] : 0;
    return {(1 - mu) / (1 - until), next / (1 - until * next),
            1 / std::sqrt(1 - std::pow(o.beta2, static_cast<double>(step)))};
  };
  const auto update = [o](Update& u) {
    ops::Build b(u.graph);
    const Value parameter = decayed(u, o.decoupled);
    update_moments(u, o.beta1, o.beta2);
    const Value root = b.add(b.mul(b.unary("sqrt", u.state[1]), u.scalars[2]), o.epsilon);
    const Value direction = b.add(b.mul(u.gradient, u.scalars[0]), b.mul(u.state[0], u.scalars[1]));
    return b.sub(parameter, b.mul(b.div(direction, root), u.lr));
  };
  return optimizer_by(o.common, {.state = {"exp_avg", "exp_avg_sq"}, .update = update, .scalars = scalars});
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
