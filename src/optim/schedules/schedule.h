// Learning-rate schedules by name, with what a recipe can tell them. Each is a file here with
// MILLRACE_SCHEDULE(name){…}.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/optim.h>
#include <millrace/settings.h>

#include "base/registry.h"

namespace millrace::optim {

/// The run that a schedule is for.
struct ScheduleSpan {
  double lr = 0;
  int64_t steps_per_epoch = 1, total_steps = 1;

  /// At least one step.
  int64_t steps(double epochs) const;
};

struct ScheduleKind {
  std::string name, doc;
  std::vector<Setting> settings = {};
  /// InputError for numbers that make no schedule.
  Schedule (*make)(const Settings& settings, const ScheduleSpan& span) = nullptr;
};

#define MILLRACE_SCHEDULE(NAME)              \
  extern const ScheduleKind schedule_##NAME; \
  const ScheduleKind schedule_##NAME

Registry<ScheduleKind>& schedule_kinds();
/// Adds a schedule to those of the library. InputError.
const ScheduleKind& register_schedule(const ScheduleKind& kind);

// What several kinds share.

Setting warmup_setting();
Setting end_setting();
/// warm_up() by the setting "warmup".
Schedule warmed_up(Schedule schedule, const Settings& settings, const ScheduleSpan& span);
/// From a to b along half a cosine, at 0 ≤ part ≤ 1.
double cosine_between(double a, double b, double part);
/// InputError below one step.
void check_total(int64_t total);

}  // namespace millrace::optim
