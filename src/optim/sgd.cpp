#include <cmath>

#include <millrace/optim.h>

#include "base/format.h"
#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const SgdOptions& o) : Optimizer(o.common), momentum_(o.momentum), nesterov_(o.nesterov) {
    if (!(momentum_ >= 0 && std::isfinite(momentum_)))
      fail<InputError>("the momentum must be at least 0, not {}", momentum_);
  }

  std::vector<std::string> state_names() const override {
    return momentum_ != 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
  }
  bool rows_suffice(double weight_decay) const override {
    return options.lazy || (momentum_ == 0 && weight_decay == 0);
  }

  Value update(Update& u) const override {
    ops::Build b(u.graph);
    const Value parameter = decayed(u, false);
    Value direction = u.gradient;
    if (momentum_ != 0) {
      u.state[0] = b.add(b.mul(u.state[0], momentum_), direction);
      direction = nesterov_ ? b.add(direction, b.mul(u.state[0], momentum_)) : u.state[0];
    }
    return b.sub(parameter, b.mul(direction, u.lr));
  }

 private:
  double momentum_;
  bool nesterov_;
};

}  // namespace

std::shared_ptr<const Optimizer> sgd(const SgdOptions& options) { return std::make_shared<Sgd>(options); }

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
