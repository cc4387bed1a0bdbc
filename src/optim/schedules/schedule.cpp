#include "optim/schedules/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/format.h"

namespace millrace::optim {

#include "generated/schedules.inc"

Registry<ScheduleKind>& schedule_kinds() {
  static Registry<ScheduleKind> kinds("schedule", {MILLRACE_FOUND_SCHEDULES});
  return kinds;
}

const ScheduleKind& register_schedule(const ScheduleKind& kind) {
  return schedule_kinds().add(kind, {{"make", kind.make}});
}

int64_t ScheduleSpan::steps(double epochs) const {
  return std::max<int64_t>(1, std::llround(epochs * static_cast<double>(steps_per_epoch)));
}

Setting warmup_setting() {
  return {"warmup", "epochs of linear warm-up from 0 before the schedule", 0.0, 0, 1e6};
}

Setting end_setting() { return {"end", "rate at the end, as a share of lr", 0.0, 0, 1}; }

Schedule make_schedule(const ScheduleKind& kind, const Settings& settings, const ScheduleSpan& span) {
  Schedule schedule = kind.make(settings, span);
  const double epochs = settings.find("warmup") ? settings.number("warmup") : 0;
  return epochs > 0 ? warm_up(std::move(schedule), span.steps(epochs)) : schedule;
}

double cosine_between(double a, double b, double part) {
  return b + (a - b) / 2 * (1 + std::cos(std::numbers::pi * part));
}

void check_total(int64_t total) {
  if (total < 1) fail<InputError>("a schedule needs at least one step, not {}", total);
}

void check_rates(std::initializer_list<double> rates) {
  for (const double rate : rates)
    if (!std::isfinite(rate) || rate < 0)
      fail<InputError>("a schedule's rates, and shares of them, are finite and not negative, not {}", rate);
}

Schedule warm_up(Schedule inner, int64_t steps) {
  if (!inner) fail<InputError>("there is no schedule to warm up to");
  if (steps < 0) fail<InputError>("a schedule cannot warm up in {} steps", steps);
  return [=](int64_t step) {
    const double factor = step < steps ? static_cast<double>(step + 1) / static_cast<double>(steps) : 1;
    return factor * inner(step);
  };
}

}  // namespace millrace::optim
