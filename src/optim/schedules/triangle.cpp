#include <algorithm>

#include "base/format.h"
#include "optim/schedules/schedule.h"

namespace millrace::optim {

Schedule triangle(double lr, int64_t total, double peak, double first, double last) {
  check_total(total);
  check_rates({lr, first, last});
  if (!(peak > 0 && peak < 1))
    fail<InputError>("the peak of a triangle schedule lies between 0 and 1, not at {}", peak);
  return [=](int64_t step) {
    const double part = std::min(1.0, static_cast<double>(step) / static_cast<double>(total));
    const double factor =
        part < peak ? first + (1 - first) * part / peak : 1 - (1 - last) * (part - peak) / (1 - peak);
    return lr * factor;
  };
}

MILLRACE_SCHEDULE(triangle){
    .name = "triangle",
    .doc = "up and down again, along straight lines",
    .settings = {warmup_setting(),
                 {"peak", "share of the run at which the rate is highest", 0.3, 0, 1},
                 {"start", "rate at the start, as a share of lr", 0.2, 0, 1},
                 end_setting()},
    .make =
        [](const Settings& settings, const ScheduleSpan& span) {
          return triangle(span.lr, span.total_steps, settings.number("peak"), settings.number("start"),
                          settings.number("end"));
        },
};

}  // namespace millrace::optim
