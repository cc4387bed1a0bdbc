#include <cmath>

#include "base/format.h"
#include "optim/schedules/schedule.h"

namespace millrace::optim {

Schedule cosine_restarts(double lr, int64_t first, double times, double last) {
  check_total(first);
  check_rates({lr, last});
  if (!(times >= 1 && std::isfinite(times)))
    fail<InputError>(
        "a cycle of a schedule with restarts is at least as long as the one before, not {} times", times);
  return [=](int64_t step) {
    auto length = static_cast<double>(first), at = static_cast<double>(step);
    if (times == 1) {
      at = std::fmod(at, length);
    } else {
      for (; at >= length; length *= times) at -= length;
    }
    return cosine_between(lr, last, at / length);
  };
}

MILLRACE_SCHEDULE(cosine_restarts){
    .name = "cosine-restarts",
    .doc = "down along half a cosine, again and again",
    .settings = {warmup_setting(),
                 end_setting(),
                 {"first", "epochs of the first cycle", 10.0, 1e-6, 1e6},
                 {"times", "each cycle is so many times as long as the one before", 2.0, 1, 100}},
    .make =
        [](const Settings& settings, const ScheduleSpan& span) {
          return cosine_restarts(span.lr, span.steps(settings.number("first")), settings.number("times"),
                                 span.lr * settings.number("end"));
        },
};

}  // namespace millrace::optim
