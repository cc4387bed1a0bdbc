#include <millrace/optim.h>

#include "base/format.h"
#include "optim/model_scope.h"

namespace millrace::optim {

Lookahead::Lookahead(nn::Module& model) : model_(model) {
  for (const nn::Named& named : model.parameters())
    if (named.tensor->dtype() == bf16)
      fail<InputError>("lookahead averages f32 weights, but '{}' is stored as bf16", named.name);
  for (const nn::Named& named : tensors_of(model))
    if (named.tensor->dtype() == f32) slow_.emplace_back(named.name, value_of(named).clone());
}

void Lookahead::update(double decay) {
  const auto keep = static_cast<float>(decay);
  size_t next = 0;
  for (const nn::Named& named : tensors_of(model_)) {
    if (named.tensor->dtype() != f32) continue;
    Array array = value_of(named), kept = next < slow_.size() ? slow_[next].second : Array();
    if (kept.type() != array.type())
      fail<TypeError>("'{}' is {} now: the model has changed since its slow weights were taken", named.name,
                      array.type().str());
    ++next;
    const auto slow = kept.as<float>();
    array.edit<float>([&](std::span<float> fast) {
      // Where both are alike (frozen parameters) rounding must not move them.
      for (size_t i = 0; i < fast.size(); ++i)
        if (fast[i] != slow[i]) fast[i] = slow[i] = keep * slow[i] + (1 - keep) * fast[i];
    });
  }
}

}  // namespace millrace::optim
