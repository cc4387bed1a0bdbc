#include <algorithm>
#include <cmath>

#include "optim/schedules/schedule.h"

namespace millrace::optim {
namespace {

/// PyTorch's ReduceLROnPlateau, its threshold relative to the size of the best.
void look_at(const Settings& settings, double value, bool higher_is_better, Watched& state) {
  const double least = settings.number("threshold") * std::abs(state.best);
  const bool better =
      std::isnan(state.best) || (higher_is_better ? value > state.best + least : value < state.best - least);
  if (better) state.best = value;
  state.waited = better ? 0 : state.waited + 1;
  if (state.resting > 0) {
    --state.resting;
    state.waited = 0;
  }
  if (state.waited <= settings.integer("patience")) return;
  state.factor = std::max(state.factor * settings.number("factor"), settings.number("end"));
  state.resting = settings.integer("cooldown");
  state.waited = 0;
}

}  // namespace

MILLRACE_SCHEDULE(plateau){
    .name = "plateau",
    .doc = "down by a factor when a measure has not improved for so many tests",
    .settings =
        {warmup_setting(),
         end_setting(),
         {"metric",
          "what must improve, of those that the test reports; empty: that of train.keep_best, else the "
          "training loss of an epoch",
          std::string()},
         {"factor", "what each step down multiplies the rate by", 0.1, 0, 1},
         {"patience", "tests without improvement that are borne", int64_t{5}, 0, 1e6},
         {"threshold", "an improvement is more than this share of the best", 1e-4, 0, 1},
         {"cooldown", "tests after a step down that do not count", int64_t{0}, 0, 1e6}},
    .make = [](const Settings& /*settings*/, const ScheduleSpan& span) { return constant(span.lr); },
    .measured = look_at,
};

}  // namespace millrace::optim
