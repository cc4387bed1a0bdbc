#include <cmath>

#include <millrace/optim.h>

#include "base/format.h"
#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {
namespace {

class Rmsprop final : public Optimizer {
 public:
  explicit Rmsprop(RmspropOptions o) : Optimizer(o.common), own_(std::move(o)) {
    check_moments(own_.alpha, 0, own_.epsilon);
    if (!(own_.momentum >= 0 && std::isfinite(own_.momentum)))
      fail<InputError>("the momentum must be at least 0, not {}", own_.momentum);
  }

  std::vector<std::string> state_names() const override {
    std::vector<std::string> names = {"square_avg"};
    if (own_.centred) names.emplace_back("grad_avg");
    if (own_.momentum != 0) names.emplace_back("momentum");
    return names;
  }

  Value update(Update& u) const override {
    ops::Build b(u.graph);
    const Value parameter = decayed(u, false), g = u.gradient;
    u.state[0] = b.add(b.mul(u.state[0], own_.alpha), b.mul(b.mul(g, g), 1 - own_.alpha));
    Value second = u.state[0];
    if (own_.centred) {
      u.state[1] = b.add(u.state[1], b.mul(b.sub(g, u.state[1]), 1 - own_.alpha));
      // What is left of equal gradients is rounding, of either sign.
      second = b.binary("maximum", b.sub(second, b.mul(u.state[1], u.state[1])), b.zeros(second));
    }
    Value direction = b.div(g, b.add(b.unary("sqrt", second), own_.epsilon));
    if (own_.momentum != 0) {
      Value& momentum = u.state.back();
      direction = momentum = b.add(b.mul(momentum, own_.momentum), direction);
    }
    return b.sub(parameter, b.mul(direction, u.lr));
  }

 private:
  RmspropOptions own_;
};

}  // namespace

std::shared_ptr<const Optimizer> rmsprop(const RmspropOptions& options) {
  return std::make_shared<Rmsprop>(options);
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
