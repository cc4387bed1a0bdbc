// A learning rate found by trying all (Smith, arXiv 1506.01186).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "task/recipe.h"
#include "train/trainer.h"

namespace millrace::train {

/// Rates from `low` to `high`, each so many times the one before, one step with each. Steps that are not
/// given: 100, and four times as many, at most 1,600, while the losses scatter too much to fall clearly and a
/// sweep takes seconds.
struct RateSweep {
  double low = 1e-7, high = 10;
  std::optional<int64_t> steps = std::nullopt;
};

/// What a sweep says. Losses end where the loss diverged.
struct RateFinding {
  std::vector<double> rates, losses, smoothed;
  std::optional<double> diverged;  // the first rate whose loss is far above the best, or not finite
  std::optional<double> steepest;  // the rate at which the loss falls fastest; none: it never does, clearly
  std::optional<double> suggested;
  std::string why;  // it is suggested, in words
};

/// What losses of a sweep say: they are smoothed without delay (a single spike counts as its neighbours), the
/// steepest descent against log(rate) is looked for from the tenth step on and before the lowest loss, and
/// what is suggested is the smaller of that rate and a tenth of the diverging one. Losses end with one that
/// is not finite where the sweep did.
RateFinding judge_rates(std::span<const double> rates, std::span<const double> losses);

/// Does the loss so far, smoothed, say that larger rates are of no use?
bool diverges(std::span<const double> losses);

/// Trains by the recipe for the steps of a sweep, with its own optimiser and batches but one rate a step, and
/// without freezing, averages and schedule. Writes nothing. InputError for a sweep that cannot be.
RateFinding find_rate(task::Recipe recipe, const RateSweep& sweep, const Observer& observer);

}  // namespace millrace::train
