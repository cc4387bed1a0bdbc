#include <millrace/optim.h>

#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {

std::shared_ptr<const Optimizer> lion(const LionOptions& o) {
  check_moments(o.beta1, o.beta2, 0);
  const auto update = [o](Update& u) {
    ops::Build b(u.graph);
    const Value parameter = decayed(u, true), old = u.state[0];
    const auto towards = [&](double beta) { return b.add(b.mul(old, beta), b.mul(u.gradient, 1 - beta)); };
    u.state[0] = towards(o.beta2);
    return b.sub(parameter, b.mul(b.unary("sign", towards(o.beta1)), u.lr));
  };
  return optimizer_by(o.common, {.state = {"exp_avg"}, .update = update});
}

MILLRACE_OPTIMIZER(lion){
    .name = "lion",
    .doc = "steps of one size, by the sign of the momentum; lr a tenth of adamw's, decay ten times",
    .settings = {{"lr", "learning rate, which the schedule multiplies", 1e-4, 0},
                 {"betas", "how much of the momentum is in a step, and how much is kept",
                  std::vector<double>{0.9, 0.99}, 0, 0.9999999}},
    .make =
        [](const Settings& settings, Options common) {
          const auto [beta1, beta2] = betas_of(settings);
          return lion({beta1, beta2, std::move(common)});
        },
};

}  // namespace millrace::optim
