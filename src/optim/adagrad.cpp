#include <millrace/optim.h>

#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {

std::shared_ptr<const Optimizer> adagrad(const AdagradOptions& o) {
  const auto update = [epsilon = o.epsilon](Update& u) {
    ops::Build b(u.graph);
    const Value parameter = decayed(u, false), gradient = u.gradient;
    u.state[0] = b.add(u.state[0], b.mul(gradient, gradient));
    const Value root = b.add(b.unary("sqrt", u.state[0]), epsilon);
    return b.sub(parameter, b.mul(b.div(gradient, root), u.lr));
  };
  return optimizer_by(o.common, {.state = {"sum"}, .update = update, .rows_apart = true});
}

MILLRACE_OPTIMIZER(adagrad){
    .name = "adagrad",
    .doc = "steps shrink with the sum of all squared gradients",
    .settings = {{"eps", "keeps the division by that sum from zero", 1e-10, 1e-30, 1}},
    .make =
        [](const Settings& settings, Options common) {
          return adagrad({settings.number("eps"), std::move(common)});
        },
};

}  // namespace millrace::optim
