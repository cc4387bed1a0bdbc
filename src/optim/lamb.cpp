#include <millrace/optim.h>

#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {

std::shared_ptr<const Optimizer> lamb(const LambOptions& o) {
  check_moments(o.beta1, o.beta2, o.epsilon);
  const auto update = [o](Update& u) {
    ops::Build b(u.graph);
    update_moments(u, o.beta1, o.beta2);
    const Value root = b.add(b.mul(b.unary("sqrt", u.state[1]), u.scalars[1]), o.epsilon);
    Value direction = b.div(b.mul(u.state[0], u.scalars[0]), root);
    if (u.weight_decay != 0) direction = b.add(direction, b.mul(u.parameter, u.weight_decay));
    const auto norm = [&](Value v) { return b.unary("sqrt", b.sum(b.mul(v, v), {}, false)); };
    const Value length = norm(u.parameter), step = norm(direction), zero = b.scalar(f32, 0);
    const Value both =
        b.binary("logical_and", b.binary("greater", length, zero), b.binary("greater", step, zero));
    const Value trust = b.select(both, b.div(length, step), b.scalar(f32, 1));
    return b.sub(u.parameter, b.mul(direction, b.mul(u.lr, trust)));
  };
  return optimizer_by(o.common, {.state = {"exp_avg", "exp_avg_sq"},
                                 .update = update,
                                 .scalars = [o](int64_t t) { return corrections(t, o.beta1, o.beta2); }});
}

MILLRACE_OPTIMIZER(lamb){
    .name = "lamb",
    .doc = "adamw whose step of each parameter is as long as the parameter, for large batches",
    .settings = {{"lr", "learning rate, which the schedule multiplies", 1e-3, 0},
                 {"betas", "decays of the first and second moment", std::vector<double>{0.9, 0.999}, 0,
                  0.9999999},
                 {"eps", "keeps the division by the second moment from zero", 1e-6, 1e-30, 1}},
    .make =
        [](const Settings& settings, Options common) {
          const auto [beta1, beta2] = betas_of(settings);
          return lamb({beta1, beta2, settings.number("eps"), std::move(common)});
        },
};

}  // namespace millrace::optim
