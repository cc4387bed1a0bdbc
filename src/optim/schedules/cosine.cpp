#include "optim/schedules/schedule.h"

namespace millrace::optim {

Schedule cosine(double lr, int64_t total, double last) {
  check_total(total);
  check_rates({lr, last});
  return [=](int64_t step) {
    return step >= total ? last
                         : cosine_between(lr, last, static_cast<double>(step) / static_cast<double>(total));
  };
}

MILLRACE_SCHEDULE(cosine){
    .name = "cosine",
    .doc = "down along half a cosine",
    .settings = {warmup_setting(), end_setting()},
    .make =
        [](const Settings& settings, const ScheduleSpan& span) {
          return cosine(span.lr, span.total_steps, span.lr * settings.number("end"));
        },
};

}  // namespace millrace::optim
