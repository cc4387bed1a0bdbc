// Parameters that stop training during a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/nn.h>

namespace millrace::train {

/// An entry of train.freeze, "white.bias 3": from that step on, the parameter of that name, or those of the
/// layer of that name, stay as they are.
struct Freeze {
  std::string name;
  int64_t step = 0;
};

/// InputError for an entry that is not NAME EPOCHS, or names nothing in the model (with the nearest
/// parameter).
std::vector<Freeze> parse_freezes(const std::vector<std::string>& entries, nn::Module& model,
                                  int64_t steps_per_epoch);

/// Freezes what is due at a step; whether something was that was not frozen before.
bool freeze_due(nn::Module& model, const std::vector<Freeze>& freezes, int64_t step);

}  // namespace millrace::train
