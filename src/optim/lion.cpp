#include <millrace/optim.h>

#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {
namespace {

class Lion final : public Optimizer {
 public:
  explicit Lion(LionOptions o) : Optimizer(o.common), own_(std::move(o)) {
    check_moments(own_.beta1, own_.beta2, 0);
  }

  std::vector<std::string> state_names() const override { return {"exp_avg"}; }

  Value update(Update& u) const override {
    ops::Build b(u.graph);
    const Value parameter = decayed(u, true), old = u.state[0];
    const auto towards = [&](double beta) { return b.add(b.mul(old, beta), b.mul(u.gradient, 1 - beta)); };
    u.state[0] = towards(own_.beta2);
    return b.sub(parameter, b.mul(b.unary("sign", towards(own_.beta1)), u.lr));
  }

 private:
  LionOptions own_;
};

}  // namespace

std::shared_ptr<const Optimizer> lion(const LionOptions& options) { return std::make_shared<Lion>(options); }

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
