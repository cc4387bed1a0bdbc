#include <millrace/optim.h>

#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {
namespace {

class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const AdagradOptions& o) : Optimizer(o.common), epsilon_(o.epsilon) {}

  std::vector<std::string> state_names() const override { return {"sum"}; }
  bool rows_suffice(double weight_decay) const override { return options.lazy || weight_decay == 0; }

  Value update(Update& u) const override {
    ops::Build b(u.graph);
    const Value parameter = decayed(u, false), gradient = u.gradient;
    u.state[0] = b.add(u.state[0], b.mul(gradient, gradient));
    const Value root = b.add(b.unary("sqrt", u.state[0]), epsilon_);
    return b.sub(parameter, b.mul(b.div(gradient, root), u.lr));
  }

 private:
  double epsilon_;
};

}  // namespace

std::shared_ptr<const Optimizer> adagrad(const AdagradOptions& options) {
  return std::make_shared<Adagrad>(options);
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
