#include "optim/moments.h"

#include <cmath>

#include "base/format.h"
#include "ops/build.h"

namespace millrace::optim {
namespace {

class ByRule final : public Optimizer {
 public:
  ByRule(const Options& common, Rule rule) : Optimizer(common), rule_(std::move(rule)) {}
  std::vector<std::string> state_names() const override { return rule_.state; }
  std::vector<StateArray> state_of(const std::string& name, const Type& type) const override {
    return rule_.state_of ? rule_.state_of(name, type) : Optimizer::state_of(name, type);
  }
  std::vector<double> scalars(int64_t step) const override {
    return rule_.scalars ? rule_.scalars(step) : std::vector<double>();
  }
  Value update(Update& u) const override { return rule_.update(u); }
  bool rows_suffice(double weight_decay) const override {
    return options.lazy || (rule_.rows_apart && weight_decay == 0);
  }

 private:
  Rule rule_;
};

}  // namespace

std::shared_ptr<const Optimizer> optimizer_by(const Options& common, Rule rule) {
  return std::make_shared<ByRule>(common, std::move(rule));
}

void check_moments(double beta1, double beta2, double epsilon) {
  for (const double beta : {beta1, beta2})
    if (!(beta >= 0 && beta < 1)) fail<InputError>("the betas must be in [0, 1), not {}", beta);
  if (!(epsilon >= 0 && std::isfinite(epsilon)))
    fail<InputError>("epsilon must be at least 0, not {}", epsilon);
}

std::pair<double, double> betas_of(const Settings& settings) {
  const std::vector<double>& betas = settings.numbers("betas");
  if (betas.size() != 2) fail<InputError>("betas must be two numbers, not {}", betas.size());
  return {betas[0], betas[1]};
}

Value decayed(Update& u, bool decoupled) {
  if (u.weight_decay == 0) return u.parameter;
  ops::Build b(u.graph);
  if (decoupled) return b.sub(u.parameter, b.mul(u.parameter, b.mul(u.lr, u.weight_decay)));
  u.gradient = b.add(u.gradient, b.mul(u.parameter, u.weight_decay));
  return u.parameter;
}

void update_moments(Update& u, double beta1, double beta2) {
  ops::Build b(u.graph);
  u.state[0] = b.add(u.state[0], b.mul(b.sub(u.gradient, u.state[0]), 1 - beta1));
  u.state[1] = b.add(b.mul(u.state[1], beta2), b.mul(b.mul(u.gradient, u.gradient), 1 - beta2));
}

std::vector<double> corrections(int64_t step, double beta1, double beta2) {
  const auto t = static_cast<double>(step);
  return {1 / (1 - std::pow(beta1, t)), 1 / std::sqrt(1 - std::pow(beta2, t))};
}

Value adam_step(Update& u, Value parameter, double beta1, double beta2, double epsilon) {
  ops::Build b(u.graph);
  update_moments(u, beta1, beta2);
  const Value root = b.add(b.mul(b.unary("sqrt", u.state[1]), u.scalars[1]), epsilon);
  return b.sub(parameter, b.mul(b.div(u.state[0], root), b.mul(u.lr, u.scalars[0])));
}

}  // namespace millrace::optim
