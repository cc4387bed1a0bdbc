#include "train/lr_find.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/format.h"
#include "base/seconds_since.h"
#include "optim/kinds.h"
#include "task/fitting.h"
#include "train/trainer_state.h"

namespace millrace::train {
namespace {

constexpr int64_t kFirstSteps = 10;  // whose losses are those of the start, whatever the rate
constexpr double kFarAbove = 4;      // times the best loss
constexpr double kFallen = 0.2;      // of the whole fall
constexpr double kClearly = 4;       // times the noise of what is compared

bool is_number(double x) { return std::isfinite(x); }

/// A step that stands alone counts as the median of it and its neighbours.
std::vector<double> without_spikes(std::span<const double> losses) {
  std::vector<double> calm(losses.begin(), losses.end());
  for (size_t i = 1; i + 1 < losses.size(); ++i) {
    double three[] = {losses[i - 1], losses[i], losses[i + 1]};
    std::sort(three, three + 3);
    calm[i] = three[1];
  }
  return calm;
}

/// By a line through each point's neighbours: its value there, and its slope a step.
struct Local {
  std::vector<double> value, slope;
};

Local local_lines(std::span<const double> y, int64_t reach) {
  Local local;
  const int64_t count = std::ssize(y);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t from = std::max<int64_t>(0, i - reach), to = std::min(count, i + reach + 1);
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int64_t k = from; k < to; ++k) {
      const auto x = static_cast<double>(k - i);
      n += 1;
      sx += x;
      sy += y[k];
      sxx += x * x;
      sxy += x * y[k];
    }
    const double spread = n * sxx - sx * sx, slope = spread > 0 ? (n * sxy - sx * sy) / spread : 0;
    local.slope.push_back(slope);
    local.value.push_back((sy - slope * sx) / n);
  }
  return local;
}

double far_above(double best) { return best + (kFarAbove - 1) * std::abs(best); }

}  // namespace

bool diverges(std::span<const double> losses) {
  constexpr double decay = 0.9;
  double mean = 0, weight = 0, best = INFINITY;
  for (size_t i = 0; i < losses.size(); ++i) {
    if (!is_number(losses[i])) return true;
    mean = decay * mean + (1 - decay) * losses[i];
    weight = decay * weight + (1 - decay);
    if (std::ssize(losses) > kFirstSteps && i > 0 && mean / weight > far_above(best)) return true;
    best = std::min(best, mean / weight);
  }
  return false;
}

RateFinding judge_rates(std::span<const double> rates, std::span<const double> losses) {
  RateFinding found;
  found.rates.assign(rates.begin(), rates.begin() + std::ssize(losses));
  found.losses.assign(losses.begin(), losses.end());
  const auto bad = std::find_if_not(losses.begin(), losses.end(), is_number);
  const std::span<const double> sound = losses.first(static_cast<size_t>(bad - losses.begin()));
  if (bad != losses.end()) found.diverged = rates[sound.size()];
  if (std::ssize(sound) <= kFirstSteps) {
    found.why = "too few losses are finite to say anything";
    return found;
  }
  const std::vector<double> calm = without_spikes(sound);
  const int64_t reach = std::max<int64_t>(2, std::ssize(calm) / 25);
  const Local local = local_lines(calm, reach);
  found.smoothed = local.value;
  const auto lowest = std::min_element(local.value.begin(), local.value.end());
  const auto rises =
      std::find_if(lowest, local.value.end(), [&](double v) { return v > far_above(*lowest); });
  if (rises != local.value.end())
    found.diverged = rates[static_cast<size_t>(rises - local.value.begin())];
  else if (!found.diverged && diverges(losses))
    found.diverged = rates[losses.size() - 1];

  // Where it is steepest the loss has fallen by some of what it falls: before that, losses only scatter.
  const int64_t end = lowest - local.value.begin(), first = std::max(kFirstSteps, 2 * reach);
  const double start = std::accumulate(calm.begin(), calm.begin() + first, 0.0) / static_cast<double>(first);
  const double fallen = start - kFallen * (start - *lowest);
  int64_t steepest = -1;
  for (int64_t i = kFirstSteps; i <= std::min<int64_t>(end, std::ssize(calm) - 2); ++i)
    if (local.slope[i] < 0 && local.value[i] < fallen &&
        (steepest < 0 || local.slope[i] < local.slope[steepest]))
      steepest = i;
  // What falls by little more than means of so many losses scatter does not fall clearly.
  double squares = 0;
  for (int64_t i = 0; i <= end; ++i) squares += (calm[i] - local.value[i]) * (calm[i] - local.value[i]);
  const double noise = std::sqrt(squares / static_cast<double>(end + 1)) *
                       std::sqrt(1 / static_cast<double>(first) + 1 / static_cast<double>(2 * reach + 1));
  if (steepest >= 0 && start - *lowest > kClearly * noise)
    found.steepest = rates[static_cast<size_t>(steepest)];

  if (found.steepest && (!found.diverged || *found.steepest <= *found.diverged / 10)) {
    found.suggested = found.steepest;
    found.why = "the loss falls fastest there";
  } else if (found.diverged) {
    found.suggested = *found.diverged / 10;
    found.why = found.steepest
                    ? "a tenth of the rate at which the loss diverges, which is less than where it falls "
                      "fastest"
                    : "a tenth of the rate at which the loss diverges; it falls nowhere clearly";
  } else {
    found.why = "the loss neither falls clearly nor diverges: sweep to a higher rate, or over more steps";
  }
  return found;
}

namespace {

RateFinding sweep_once(task::Recipe recipe, const RateSweep& sweep, int64_t steps, const Observer& observer) {
  task::Recipe::Train& train = recipe.train;
  train.lr_scale = 1;
  train.lookahead = train.verify = train.early_stopping = 0;
  train.ema = train.swa = 0;
  train.freeze.clear();
  train.keep_best.clear();
  TrainerState s;
  s.most_samples = std::max<int64_t>(steps + 1, 8) * std::max<int64_t>(train.batch, 1);
  s.task.recipe = std::move(recipe);
  s.observer = observer;
  s.open_data("");
  s.tests = {};
  s.build(nullptr);
  std::vector<double> rates, losses;
  for (int64_t i = 0; i < steps && !diverges(losses); ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(steps - 1);
    rates.push_back(sweep.low * std::pow(sweep.high / sweep.low, part));
    s.schedule = [rate = rates.back()](int64_t) { return rate; };
    try {
      if (!s.one_step()) fail<Error>("stopped before the sweep was through");
      losses.push_back(s.step->loss());
    } catch (const Error&) {
      if (!s.step || s.step->step() <= i || s.step->sound()) throw;
      losses.push_back(std::isfinite(s.step->loss()) ? INFINITY : s.step->loss());
    }
    observer.busy("trying rates", i + 1, steps);
  }
  return judge_rates(rates, losses);
}

}  // namespace

RateFinding find_rate(task::Recipe recipe, const RateSweep& sweep, const Observer& observer) {
  constexpr int64_t least_steps = 2 * kFirstSteps, most_steps = 100000;
  if (!(sweep.low > 0 && sweep.high > sweep.low && std::isfinite(sweep.high)))
    fail<InputError>("rates are swept from one above 0 to a higher one, not from {} to {}", sweep.low,
                     sweep.high);
  if (sweep.steps && (*sweep.steps < least_steps || *sweep.steps > most_steps))
    fail<InputError>("a sweep has {} to {} steps, not {}", least_steps, most_steps, *sweep.steps);
  task::require_steps(recipe, "a sweep of learning rates");
  const std::string& optimizer = recipe.train.optimizer.kind;
  if (optim::optimizer_kinds().at(optimizer).whole)
    fail<InputError>("train.optimizer = \"{}\" has no rate: the lengths of its steps are searched for",
                     optimizer);
  if (sweep.steps) return sweep_once(std::move(recipe), sweep, *sweep.steps, observer);
  constexpr int64_t usual_steps = 100, most_usual_steps = 1600;
  constexpr double quick_seconds = 3;
  for (int64_t steps = usual_steps;; steps *= 4) {
    const auto begin = std::chrono::steady_clock::now();
    RateFinding found = sweep_once(recipe, sweep, steps, observer);
    const double taken = seconds_since(begin);
    if (found.steepest || steps == most_usual_steps || taken > quick_seconds) return found;
  }
}

}  // namespace millrace::train
