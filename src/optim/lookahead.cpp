#include <millrace/optim.h>

#include "optim/model_scope.h"

namespace millrace::optim {

Lookahead::Lookahead(nn::Module& model) : model_(model) {
  for (const auto& list : {model.parameters(), model.buffers()})
    for (const nn::Named& named : list)
      if (named.tensor->dtype() == f32) slow_.emplace_back(named.name, value_of(named).clone());
}

void Lookahead::update(double decay) {
  const auto keep = static_cast<float>(decay);
  size_t next = 0;
  for (const auto& list : {model_.parameters(), model_.buffers()})
    for (const nn::Named& named : list) {
      if (named.tensor->dtype() != f32) continue;
      const auto slow = slow_[next++].second.as<float>();
      Array array = value_of(named);
      const auto fast = array.as<float>();
      for (size_t i = 0; i < fast.size(); ++i) fast[i] = slow[i] = keep * slow[i] + (1 - keep) * fast[i];
    }
}

}  // namespace millrace::optim
