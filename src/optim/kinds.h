// Optimisers by name, with what a recipe can tell them: files here end with MILLRACE_OPTIMIZER(name){…}.
// Schedules: optim/schedules/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/nn.h>
#include <millrace/optim.h>
#include <millrace/settings.h>

#include "base/registry.h"
#include "optim/rates.h"
#include "optim/schedules/schedule.h"

namespace millrace::optim {

struct OptimizerKind {
  std::string name, doc;
  /// Its own, besides common_optimizer_settings().
  std::vector<Setting> settings = {};
  /// It goes by the loss of all samples (lbfgs.h): its optimiser sums the gradients of a pass as
  /// "gradient.NAME", and has of the common settings only the decay.
  bool whole = false;
  /// InputError for settings that make no optimiser.
  std::shared_ptr<const Optimizer> (*make)(const Settings& settings, Options common) = nullptr;
};

#define MILLRACE_OPTIMIZER(NAME)               \
  extern const OptimizerKind optimizer_##NAME; \
  const OptimizerKind optimizer_##NAME

Registry<OptimizerKind>& optimizer_kinds();
/// Adds an optimiser to those of the library. InputError.
const OptimizerKind& register_optimizer(const OptimizerKind& kind);

/// lr, weight_decay, norm_bias_lr, decay_all.
std::vector<Setting> common_optimizer_settings();
/// Common ones, then the kind's own: what make_optimizer() reads.
std::vector<Setting> optimizer_settings(const OptimizerKind& kind);

/// The rate that the schedule multiplies; 0 of kinds that have none.
double learning_rate(const Settings& settings);

/// `settings`: of optimizer_settings(kind); the limits as in Options; `model` tells which biases belong to
/// batch norms, and its names what trains at other rates. InputError as Optimizer, the kind and
/// rate_factors() have it, and for a kind that goes by passes, which only a training makes.
std::shared_ptr<const Optimizer> make_optimizer(const OptimizerKind& kind, const Settings& settings,
                                                double clip_norm, double clip_value, nn::Module& model,
                                                const Rates& rates = {});

}  // namespace millrace::optim
