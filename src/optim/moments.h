// What optimisers with a first and a second moment share (Adam and its kin).
#pragma once

#include <utility>

#include <millrace/optim.h>
#include <millrace/settings.h>

namespace millrace::optim {

/// InputError unless both betas are in [0, 1) and epsilon is at least 0.
void check_moments(double beta1, double beta2, double epsilon);
/// The setting "betas"; InputError unless it is two numbers.
std::pair<double, double> betas_of(const Settings& settings);
/// Weight decay: decoupled, of the parameter that is returned, or else added to u.gradient.
Value decayed(Update& u, bool decoupled);
/// u.state[0] and [1], the first and second moment, with this gradient.
void update_moments(Update& u, double beta1, double beta2);

}  // namespace millrace::optim
