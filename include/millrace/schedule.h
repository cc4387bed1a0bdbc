// Learning-rate schedules.
#pragma once

#include <cstdint>
#include <functional>

namespace millrace::optim {

/// The learning rate of a step (0, 1 …). InputError for numbers that make no schedule.
using Schedule = std::function<double(int64_t step)>;
Schedule constant(double lr);
/// lr · factor^(step / every)
Schedule step_decay(double lr, int64_t every, double factor = 0.1);
/// From lr to `last` along half a cosine over `total` steps, then `last` (arXiv 1608.03983).
Schedule cosine(double lr, int64_t total, double last = 0);
/// From lr to lr·last along a straight line over `total` steps, then lr·last.
Schedule linear_decay(double lr, int64_t total, double last = 0);
/// From lr to lr·last along the power of the share of `total` that is left, then lr·last.
Schedule polynomial(double lr, int64_t total, double power = 2, double last = 0);
/// From lr to `last` along half a cosine in `first` steps, then again in `times` as many … (arXiv
/// 1608.03983).
Schedule cosine_restarts(double lr, int64_t first, double times = 2, double last = 0);
/// lr for `flat` steps, then lr · sqrt(flat / steps).
Schedule inverse_sqrt(double lr, int64_t flat);
/// PyTorch's OneCycleLR with cosine annealing: lr / divide up to lr over `rise` of the steps, then down to
/// lr / divide / final_divide (Smith and Topin, arXiv 1708.07120).
Schedule one_cycle(double lr, int64_t total, double rise = 0.3, double divide = 25,
                   double final_divide = 1e4);
/// Linear from lr·first up to lr at `peak`·total, then down to lr·last.
Schedule triangle(double lr, int64_t total, double peak = 0.23, double first = 0.2, double last = 0.07);
/// `inner` times a factor that grows linearly from 1 / steps to 1 over the first `steps` steps; inner's steps
/// count from the start too.
Schedule warm_up(Schedule inner, int64_t steps);

}  // namespace millrace::optim
