#include <cmath>

#include <millrace/optim.h>

#include "base/format.h"
#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {

std::shared_ptr<const Optimizer> sgd(const SgdOptions& o) {
  if (!(o.momentum >= 0 && std::isfinite(o.momentum)))
    fail<InputError>("the momentum must be at least 0, not {}", o.momentum);
  const bool keeps = o.momentum != 0;
  const auto update = [o, keeps](Update& u) {
    ops::Build b(u.graph);
    const Value parameter = decayed(u, false);
    Value direction = u.gradient;
    if (keeps) {
      u.state[0] = b.add(b.mul(u.state[0], o.momentum), direction);
      direction = o.nesterov ? b.add(direction, b.mul(u.state[0], o.momentum)) : u.state[0];
    }
    return b.sub(parameter, b.mul(direction, u.lr));
  };
  std::vector<std::string> state;
  if (keeps) state.emplace_back("momentum");
  return optimizer_by(o.common, {.state = std::move(state), .update = update, .rows_apart = !keeps});
}

namespace {

std::vector<Setting> sgd_settings() {
  return {{"momentum", "share of the last update kept", 0.9, 0, 0.999999},
          {"nesterov", "momentum looks one step ahead", false}};
}

std::shared_ptr<const Optimizer> sgd_by(const Settings& settings, Options common) {
  return sgd({settings.number("momentum"), settings.flag("nesterov"), std::move(common)});
}

}  // namespace

MILLRACE_OPTIMIZER(sgd){
    .name = "sgd",
    .doc = "stochastic gradient descent, with momentum",
    .settings = sgd_settings(),
    .make = sgd_by,
};

MILLRACE_OPTIMIZER(lazy_sgd){
    .name = "lazy-sgd",
    .doc = "sgd that updates of an embedding only the rows that the batch reads",
    .settings = sgd_settings(),
    .make =
        [](const Settings& settings, Options common) {
          common.lazy = true;
          return sgd_by(settings, std::move(common));
        },
};

}  // namespace millrace::optim
