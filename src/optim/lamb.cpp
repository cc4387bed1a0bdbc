#include <millrace/optim.h>

#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {
namespace {

class Lamb final : public Optimizer {
 public:
  explicit Lamb(LambOptions o) : Optimizer(o.common), own_(std::move(o)) {
    check_moments(own_.beta1, own_.beta2, own_.epsilon);
  }

  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }

  std::vector<double> scalars(int64_t step) const override {
    return corrections(step, own_.beta1, own_.beta2);
  }

  Value update(Update& u) const override {
    ops::Build b(u.graph);
    update_moments(u, own_.beta1, own_.beta2);
    const Value root = b.add(b.mul(b.unary("sqrt", u.state[1]), u.scalars[1]), own_.epsilon);
    Value direction = b.div(b.mul(u.state[0], u.scalars[0]), root);
    if (u.weight_decay != 0) direction = b.add(direction, b.mul(u.parameter, u.weight_decay));
    const auto norm = [&](Value v) { return b.unary("sqrt", b.sum(b.mul(v, v), {}, false)); };
    const Value length = norm(u.parameter), step = norm(direction), zero = b.scalar(f32, 0);
    const Value both =
        b.binary("logical_and", b.binary("greater", length, zero), b.binary("greater", step, zero));
    const Value trust = b.select(both, b.div(length, step), b.scalar(f32, 1));
    return b.sub(u.parameter, b.mul(direction, b.mul(u.lr, trust)));
  }

 private:
  LambOptions own_;
};

}  // namespace

std::shared_ptr<const Optimizer> lamb(const LambOptions& options) { return std::make_shared<Lamb>(options); }

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
