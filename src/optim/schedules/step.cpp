#include <cmath>

#include "optim/schedules/schedule.h"

namespace millrace::optim {

Schedule step_decay(double lr, int64_t every, double factor) {
  check_total(every);
  check_rates({lr, factor});
  return [=](int64_t step) {
    const int64_t drops = step / every;
    return lr * std::pow(factor, static_cast<double>(drops));
  };
}

MILLRACE_SCHEDULE(step){
    .name = "step",
    .doc = "down by a factor every so many epochs",
    .settings = {warmup_setting(),
                 {"every", "epochs from one step down to the next", 10.0, 1e-6, 1e6},
                 {"factor", "what each step down multiplies the rate by", 0.1, 0, 1}},
    .make =
        [](const Settings& settings, const ScheduleSpan& span) {
          return step_decay(span.lr, span.steps(settings.number("every")), settings.number("factor"));
        },
};

}  // namespace millrace::optim
