#include "optim/schedules/schedule.h"

namespace millrace::optim {

Schedule constant(double lr) {
  check_rates({lr});
  return [lr](int64_t) { return lr; };
}

MILLRACE_SCHEDULE(constant){
    .name = "constant",
    .doc = "always the same",
    .settings = {warmup_setting()},
    .make = [](const Settings& /*settings*/, const ScheduleSpan& span) { return constant(span.lr); },
};

}  // namespace millrace::optim
