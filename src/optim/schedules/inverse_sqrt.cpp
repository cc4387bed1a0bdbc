#include <algorithm>
#include <cmath>

#include "optim/schedules/schedule.h"

namespace millrace::optim {

Schedule inverse_sqrt(double lr, int64_t flat) {
  check_total(flat);
  check_rates({lr});
  return [=](int64_t step) {
    return lr * std::sqrt(static_cast<double>(flat) / static_cast<double>(std::max(flat, step + 1)));
  };
}

MILLRACE_SCHEDULE(inverse_sqrt){
    .name = "inverse-sqrt",
    .doc = "after the warm-up down with the root of the steps, whatever the length of the run",
    .settings = {{"warmup", "epochs of linear warm-up from 0, after which the rate falls", 1.0, 0, 1e6}},
    .make =
        [](const Settings& settings, const ScheduleSpan& span) {
          return inverse_sqrt(span.lr, span.steps(settings.number("warmup")));
        },
};

}  // namespace millrace::optim
