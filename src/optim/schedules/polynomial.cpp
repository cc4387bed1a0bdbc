#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "optim/schedules/schedule.h"

namespace millrace::optim {

Schedule polynomial(double lr, int64_t total, double power, double last) {
  check_total(total);
  check_rates({lr, last});
  if (!(power >= 0 && std::isfinite(power)))
    fail<InputError>("the power of a polynomial schedule is at least 0, not {}", power);
  return [=](int64_t step) {
    const double left = 1 - std::min(1.0, static_cast<double>(step) / static_cast<double>(total));
    return lr * (last + (1 - last) * std::pow(left, power));
  };
}

MILLRACE_SCHEDULE(polynomial){
    .name = "polynomial",
    .doc = "down along a power of what is left of the run",
    .settings = {warmup_setting(), end_setting(), {"power", "2: along a parabola", 2.0, 0, 100}},
    .make =
        [](const Settings& settings, const ScheduleSpan& span) {
          return polynomial(span.lr, span.total_steps, settings.number("power"), settings.number("end"));
        },
};

}  // namespace millrace::optim
