// What optimisers share: rules as functions, and the first and second moment of Adam and its kin.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/optim.h>
#include <millrace/settings.h>

namespace millrace::optim {

/// An optimiser as functions.
struct Rule {
  std::vector<std::string> state = {};  // Optimizer::state_names()
  std::function<std::vector<StateArray>(const std::string& name, const Type& type)> state_of = {};
  std::function<Value(Update&)> update;
  std::function<std::vector<double>(int64_t step)> scalars = {};
  bool rows_apart = false;  // rows without a gradient stay as they are, unless they decay
};
std::shared_ptr<const Optimizer> optimizer_by(const Options& common, Rule rule);

/// InputError unless both betas are in [0, 1) and epsilon is at least 0.
void check_moments(double beta1, double beta2, double epsilon);
/// The setting "betas"; InputError unless it is two numbers.
std::pair<double, double> betas_of(const Settings& settings);
/// Weight decay: decoupled, of the parameter that is returned, or else added to u.gradient.
Value decayed(Update& u, bool decoupled);
/// u.state[0] and [1], the first and second moment, with this gradient.
void update_moments(Update& u, double beta1, double beta2);
/// Scalars of a step, by which moments that were 0 at first are corrected: 1 / (1 − β1^t) and 1 / sqrt(1 −
/// β2^t).
std::vector<double> corrections(int64_t step, double beta1, double beta2);
/// Adam's step from `parameter`, with the moments updated and corrections() as u.scalars.
Value adam_step(Update& u, Value parameter, double beta1, double beta2, double epsilon);

}  // namespace millrace::optim
