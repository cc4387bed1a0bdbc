// Learning-rate schedules by name, with what a recipe can tell them. Each is a file here with
// MILLRACE_SCHEDULE(name){…}.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include <millrace/schedule.h>
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

/// What a schedule that goes by measurements remembers: a part of a training's state.
struct Watched {
  double factor = 1;                                       // of the rate
  double best = std::numeric_limits<double>::quiet_NaN();  // NaN: none yet
  int64_t waited = 0;                                      // measurements since it was best
  int64_t resting = 0;                                     // measurements that do not count yet
};

struct ScheduleKind {
  std::string name, doc;
  std::vector<Setting> settings = {};
  /// Without its warm-up. InputError for numbers that make no schedule.
  Schedule (*make)(const Settings& settings, const ScheduleSpan& span) = nullptr;
  /// Of a schedule that goes by measurements, whose setting "metric" names what: takes one into account. The
  /// rate is then that of the step times state.factor. Null: it goes by the step alone.
  void (*measured)(const Settings& settings, double value, bool higher_is_better, Watched& state) = nullptr;
};

#define MILLRACE_SCHEDULE(NAME)              \
  extern const ScheduleKind schedule_##NAME; \
  const ScheduleKind schedule_##NAME

Registry<ScheduleKind>& schedule_kinds();
/// Adds a schedule to those of the library. InputError.
const ScheduleKind& register_schedule(const ScheduleKind& kind);

/// The schedule of a kind, where that has the setting "warmup" behind so many epochs of warm_up().
Schedule make_schedule(const ScheduleKind& kind, const Settings& settings, const ScheduleSpan& span);

// What several kinds share.

Setting warmup_setting();
Setting end_setting();
/// From a to b along half a cosine, at 0 ≤ part ≤ 1.
double cosine_between(double a, double b, double part);
/// InputError below one step.
void check_total(int64_t total);
/// InputError where one is negative, or none.
void check_rates(std::initializer_list<double> rates);

}  // namespace millrace::optim
