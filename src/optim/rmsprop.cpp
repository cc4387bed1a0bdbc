#include <cmath>

#include <millrace/optim.h>

#include "base/format.h"
#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {

std::shared_ptr<const Optimizer> rmsprop(const RmspropOptions& o) {
  check_moments(o.alpha, 0, o.epsilon);
  if (!(o.momentum >= 0 && std::isfinite(o.momentum)))
    fail<InputError>("the momentum must be at least 0, not {}", o.momentum);
  std::vector<std::string> state = {"square_avg"};
  if (o.centred) state.emplace_back("grad_avg");
  if (o.momentum != 0) state.emplace_back("momentum");
  const auto update = [o](Update& u) {
    ops::Build b(u.graph);
    const Value parameter = decayed(u, false), g = u.gradient;
    u.state[0] = b.add(b.mul(u.state[0], o.alpha), b.mul(b.mul(g, g), 1 - o.alpha));
    Value second = u.state[0];
    if (o.centred) {
      u.state[1] = b.add(u.state[1], b.mul(b.sub(g, u.state[1]), 1 - o.alpha));
      // What is left of equal gradients is rounding, of either sign.
      second = b.binary("maximum", b.sub(second, b.mul(u.state[1], u.state[1])), b.zeros(second));
    }
    Value direction = b.div(g, b.add(b.unary("sqrt", second), o.epsilon));
    if (o.momentum != 0) {
      Value& momentum = u.state.back();
      direction = momentum = b.add(b.mul(momentum, o.momentum), direction);
    }
    return b.sub(parameter, b.mul(direction, u.lr));
  };
  return optimizer_by(o.common, {.state = std::move(state), .update = update});
}

MILLRACE_OPTIMIZER(rmsprop){
    .name = "rmsprop",
    .doc = "gradients divided by the root of their second moment",
    .settings = {{"lr", "learning rate, which the schedule multiplies", 1e-3, 0},
                 {"alpha", "decay of the second moment", 0.99, 0, 0.9999999},
                 {"eps", "keeps the division by the second moment from zero", 1e-8, 1e-30, 1},
                 {"momentum", "share of the last update kept", 0.0, 0, 0.999999},
                 {"centred", "the second moment is that around the mean", false}},
    .make =
        [](const Settings& settings, Options common) {
          return rmsprop({settings.number("alpha"), settings.number("eps"), settings.number("momentum"),
                          settings.flag("centred"), std::move(common)});
        },
};

}  // namespace millrace::optim
