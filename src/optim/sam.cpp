#include <cmath>

#include <millrace/optim.h>

#include "base/format.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {
namespace {

/// The base's update; which gradients it gets, the step's graph decides by ascent().
class Sam final : public Optimizer {
 public:
  Sam(std::shared_ptr<const Optimizer> base, double rho)
      : Optimizer(base ? base->options : Options{}), base_(std::move(base)), rho_(rho) {
    if (!base_) fail<InputError>("sam needs an optimiser that it goes with");
    if (!(rho_ > 0 && std::isfinite(rho_))) fail<InputError>("rho must be more than 0, not {}", rho_);
  }

  std::vector<StateArray> state_of(const std::string& name, const Type& type) const override {
    return base_->state_of(name, type);
  }
  std::vector<std::string> state_names() const override { return base_->state_names(); }
  std::vector<double> scalars(int64_t step) const override { return base_->scalars(step); }
  Value update(Update& update) const override { return base_->update(update); }
  bool rows_suffice(double weight_decay) const override { return base_->rows_suffice(weight_decay); }
  double ascent() const override { return rho_; }

 private:
  std::shared_ptr<const Optimizer> base_;
  double rho_;
};

}  // namespace

std::shared_ptr<const Optimizer> sam(std::shared_ptr<const Optimizer> base, double rho) {
  return std::make_shared<Sam>(std::move(base), rho);
}

MILLRACE_OPTIMIZER(sam){
    .name = "sam",
    .doc = "looks for flat minima: gradients a little way uphill, at twice the time a step",
    .settings = {{"rho", "how far uphill, as the norm over all parameters", 0.05, 1e-6, 1e3},
                 {"base", "what steps by these gradients", std::string("sgd"), -1e18, 1e18, {"sgd", "adamw"}},
                 {"momentum", "sgd's: share of the last update kept", 0.9, 0, 0.999999},
                 {"nesterov", "sgd's: momentum looks one step ahead", false},
                 {"betas", "adamw's decays of the first and second moment", std::vector<double>{0.9, 0.999},
                  0, 0.9999999},
                 {"eps", "adamw's, keeps the division by the second moment from zero", 1e-8, 1e-30, 1}},
    .make =
        [](const Settings& settings, Options common) {
          const auto [beta1, beta2] = betas_of(settings);
          auto base = settings.text("base") == "adamw"
                          ? adamw({beta1, beta2, settings.number("eps"), std::move(common)})
                          : sgd({settings.number("momentum"), settings.flag("nesterov"), std::move(common)});
          return sam(std::move(base), settings.number("rho"));
        },
};

}  // namespace millrace::optim
