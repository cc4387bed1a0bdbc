#include <cmath>

#include <millrace/optim.h>

#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {

std::shared_ptr<const Optimizer> radam(const RadamOptions& o) {
  check_moments(o.beta1, o.beta2, o.epsilon);
  // 1 / (1 − β1^t), and what divides the second moment's root: 0 while its variance cannot be told.
  const auto scalars = [o](int64_t step) -> std::vector<double> {
    constexpr double least_length = 5;  // of the average, in steps
    const auto t = static_cast<double>(step);
    const double power = std::pow(o.beta2, t), correction = 1 - power;
    const double longest = 2 / (1 - o.beta2) - 1, length = longest - 2 * t * power / correction;
    const double rectified = length > least_length
                                 ? std::sqrt((length - 4) * (length - 2) * longest /
                                             ((longest - 4) * (longest - 2) * length) * correction)
                                 : 0;
    return {1 / (1 - std::pow(o.beta1, t)), rectified};
  };
  const auto update = [o](Update& u) {
    ops::Build b(u.graph);
    const Value parameter = decayed(u, o.decoupled);
    update_moments(u, o.beta1, o.beta2);
    const Value root = b.add(b.unary("sqrt", u.state[1]), o.epsilon);
    const Value told = b.binary("greater", u.scalars[1], b.scalar(f32, 0));
    const Value factor = b.select(told, b.div(u.scalars[1], root), b.fill(root, 1));
    return b.sub(parameter, b.mul(b.mul(u.state[0], factor), b.mul(u.lr, u.scalars[0])));
  };
  return optimizer_by(o.common, {.state = {"exp_avg", "exp_avg_sq"}, .update = update, .scalars = scalars});
}

MILLRACE_OPTIMIZER(radam){
    .name = "radam",
    .doc = "adam that warms up by itself, as the second moment becomes known",
    .settings = {{"lr", "learning rate, which the schedule multiplies", 1e-3, 0},
                 {"betas", "decays of the first and second moment", std::vector<double>{0.9, 0.999}, 0,
                  0.9999999},
                 {"eps", "keeps the division by the second moment from zero", 1e-8, 1e-30, 1},
                 {"decoupled", "weight decay does not go through the moments", false}},
    .make =
        [](const Settings& settings, Options common) {
          const auto [beta1, beta2] = betas_of(settings);
          return radam({beta1, beta2, settings.number("eps"), settings.flag("decoupled"), std::move(common)});
        },
};

}  // namespace millrace::optim
