// Adam and AdamW differ in where weight decay enters.
#include <millrace/optim.h>

#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {
namespace {

std::shared_ptr<const Optimizer> adam_by(const AdamOptions& o, bool decoupled) {
  check_moments(o.beta1, o.beta2, o.epsilon);
  const auto update = [o, decoupled](Update& u) {
    return adam_step(u, decayed(u, decoupled), o.beta1, o.beta2, o.epsilon);
  };
  return optimizer_by(o.common, {.state = {"exp_avg", "exp_avg_sq"},
                                 .update = update,
                                 .scalars = [o](int64_t t) { return corrections(t, o.beta1, o.beta2); }});
}

}  // namespace

std::shared_ptr<const Optimizer> adam(const AdamOptions& options) { return adam_by(options, false); }
std::shared_ptr<const Optimizer> adamw(const AdamOptions& options) { return adam_by(options, true); }

namespace {

std::vector<Setting> adam_settings() {
  return {{"lr", "learning rate, which the schedule multiplies", 1e-3, 0},
          {"betas", "decays of the first and second moment", std::vector<double>{0.9, 0.999}, 0, 0.9999999},
          {"eps", "keeps the division by the second moment from zero", 1e-8, 1e-30, 1}};
}

template <bool decoupled, bool lazy>
std::shared_ptr<const Optimizer> adam_of(const Settings& settings, Options common) {
  const auto [beta1, beta2] = betas_of(settings);
  common.lazy = lazy;
  return adam_by({beta1, beta2, settings.number("eps"), std::move(common)}, decoupled);
}

}  // namespace

MILLRACE_OPTIMIZER(adam){
    .name = "adam",
    .doc = "steps by the first and second moment of the gradients",
    .settings = adam_settings(),
    .make = adam_of<false, false>,
};

MILLRACE_OPTIMIZER(adamw){
    .name = "adamw",
    .doc = "adam whose weight decay does not go through the moments",
    .settings = adam_settings(),
    .make = adam_of<true, false>,
};

MILLRACE_OPTIMIZER(lazy_adam){
    .name = "lazy-adam",
    .doc = "adam that updates of an embedding only the rows that the batch reads",
    .settings = adam_settings(),
    .make = adam_of<false, true>,
};

MILLRACE_OPTIMIZER(lazy_adamw){
    .name = "lazy-adamw",
    .doc = "adamw that updates of an embedding only the rows that the batch reads",
    .settings = adam_settings(),
    .make = adam_of<true, true>,
};

}  // namespace millrace::optim
