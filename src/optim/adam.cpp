// Adam and AdamW differ in where weight decay enters.
#include <millrace/optim.h>

#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {
namespace {

class Adam final : public Optimizer {
 public:
  Adam(const AdamOptions& o, bool decoupled)
      : Optimizer(o.common), beta1_(o.beta1), beta2_(o.beta2), epsilon_(o.epsilon), decoupled_(decoupled) {
    check_moments(beta1_, beta2_, epsilon_);
  }

  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }

  std::vector<double> scalars(int64_t step) const override { return corrections(step, beta1_, beta2_); }

  Value update(Update& u) const override {
    return adam_step(u, decayed(u, decoupled_), beta1_, beta2_, epsilon_);
  }

 private:
  double beta1_, beta2_, epsilon_;
  bool decoupled_;
};

}  // namespace

std::shared_ptr<const Optimizer> adam(const AdamOptions& options) {
  return std::make_shared<Adam>(options, false);
}
std::shared_ptr<const Optimizer> adamw(const AdamOptions& options) {
  return std::make_shared<Adam>(options, true);
}

namespace {

std::vector<Setting> adam_settings() {
  return {{"lr", "learning rate, which the schedule multiplies", 1e-3, 0},
          {"betas", "decays of the first and second moment", std::vector<double>{0.9, 0.999}, 0, 0.9999999},
          {"eps", "keeps the division by the second moment from zero", 1e-8, 1e-30, 1}};
}

template <bool decoupled, bool lazy>
std::shared_ptr<const Optimizer> adam_by(const Settings& settings, Options common) {
  const auto [beta1, beta2] = betas_of(settings);
  common.lazy = lazy;
  const AdamOptions options{beta1, beta2, settings.number("eps"), std::move(common)};
  return std::make_shared<Adam>(options, decoupled);
}

}  // namespace

MILLRACE_OPTIMIZER(adam){
    .name = "adam",
    .doc = "steps by the first and second moment of the gradients",
    .settings = adam_settings(),
    .make = adam_by<false, false>,
};

MILLRACE_OPTIMIZER(adamw){
    .name = "adamw",
    .doc = "adam whose weight decay does not go through the moments",
    .settings = adam_settings(),
    .make = adam_by<true, false>,
};

MILLRACE_OPTIMIZER(lazy_adam){
    .name = "lazy-adam",
    .doc = "adam that updates of an embedding only the rows that the batch reads",
    .settings = adam_settings(),
    .make = adam_by<false, true>,
};

MILLRACE_OPTIMIZER(lazy_adamw){
    .name = "lazy-adamw",
    .doc = "adamw that updates of an embedding only the rows that the batch reads",
    .settings = adam_settings(),
    .make = adam_by<true, true>,
};

}  // namespace millrace::optim
