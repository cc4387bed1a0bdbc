#include <algorithm>

#include "base/format.h"
#include "optim/schedules/schedule.h"

namespace millrace::optim {

Schedule one_cycle(double lr, int64_t total, double rise, double divide, double final_divide) {
  check_total(total);
  check_rates({lr});
  if (!(rise >= 0 && rise <= 1) || !(divide > 0) || !(final_divide > 0))
    fail<InputError>(
        "a one-cycle schedule rises for a share of its steps and divides by numbers above 0, not {}, {} and "
        "{}",
        rise, divide, final_divide);
  const double first = lr / divide, last = first / final_divide;
  const double up = rise * static_cast<double>(total) - 1, end = static_cast<double>(total - 1);
  return [=](int64_t step) {
    const auto at = static_cast<double>(std::min(step, total - 1));
    if (at <= up) return up > 0 ? cosine_between(first, lr, at / up) : lr;
    return end > up ? cosine_between(lr, last, (at - up) / (end - up)) : last;
  };
}

MILLRACE_SCHEDULE(one_cycle){
    .name = "one-cycle",
    .doc = "up and down again, along half a cosine each",
    .settings = {warmup_setting(),
                 {"peak", "share of the run at which the rate is highest", 0.3, 0, 1},
                 {"start", "rate at the start, as a share of lr", 0.2, 0, 1},
                 end_setting()},
    .make =
        [](const Settings& settings, const ScheduleSpan& span) {
          // Shares of 0 would be divisions by it.
          const double start = std::max(settings.number("start"), 1e-9),
                       end = std::max(settings.number("end"), 1e-12);
          return one_cycle(span.lr, span.total_steps, settings.number("peak"), 1 / start, start / end);
        },
};

}  // namespace millrace::optim
