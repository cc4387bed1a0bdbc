#include <algorithm>

#include "optim/schedules/schedule.h"

namespace millrace::optim {

Schedule linear_decay(double lr, int64_t total, double last) {
  check_total(total);
  check_rates({lr, last});
  return [=](int64_t step) {
    const double part = std::min(1.0, static_cast<double>(step) / static_cast<double>(total));
    return lr * (1 - (1 - last) * part);
  };
}

MILLRACE_SCHEDULE(linear){
    .name = "linear",
    .doc = "down along a straight line",
    .settings = {warmup_setting(), end_setting()},
    .make =
        [](const Settings& settings, const ScheduleSpan& span) {
          return linear_decay(span.lr, span.total_steps, settings.number("end"));
        },
};

}  // namespace millrace::optim
