// What all optimisers share.
#include <cmath>

#include <millrace/optim.h>

#include "base/format.h"

namespace millrace::optim {
namespace {

void check_decay(double decay) {
  if (!(decay >= 0 && std::isfinite(decay)))
    fail<InputError>("weight decay must be at least 0, not {}", decay);
}

Options checked(Options options) {
  check_decay(options.weight_decay);
  for (const double limit : {options.clip_value, options.clip_norm})
    if (!(limit >= 0)) fail<InputError>("gradients are limited to at least 0 (0: no limit), not {}", limit);
  for (const Group& group : options.groups) {
    if (!group.applies) fail<InputError>("a group of parameters needs a rule that says which it applies to");
    if (!std::isfinite(group.lr_scale))
      fail<InputError>("the learning rate of a group cannot be scaled by {}", group.lr_scale);
    if (group.weight_decay) check_decay(*group.weight_decay);
  }
  return options;
}

}  // namespace

Optimizer::Optimizer(Options common) : options(checked(std::move(common))) {}

std::vector<StateArray> Optimizer::state_of(const std::string& /*name*/, const Type& type) const {
  std::vector<StateArray> arrays;
  for (std::string& name : state_names()) arrays.push_back({std::move(name), type});
  return arrays;
}

}  // namespace millrace::optim
