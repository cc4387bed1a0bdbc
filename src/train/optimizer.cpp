#include "train/optimizer.h"

#include <cmath>
#include <set>

#include "base/format.h"

namespace millrace::train {
namespace {

/// "blocks.0.n1.bias" for every "blocks.0.n1.running_mean".
std::set<std::string> norm_biases(nn::Module& model) {
  std::set<std::string> names;
  const std::string suffix = "running_mean";
  for (const nn::Named& buffer : model.buffers())
    if (buffer.name.ends_with(suffix))
      names.insert(buffer.name.substr(0, buffer.name.size() - suffix.size()) + "bias");
  return names;
}

optim::Options common_options(const Recipe& recipe, nn::Module& model) {
  const Recipe::Optimizer& wanted = recipe.train.optimizer;
  optim::Options options;
  options.weight_decay = wanted.weight_decay;
  options.clip_norm = recipe.train.clip_norm;
  options.clip_value = recipe.train.clip_value;
  if (wanted.norm_bias_lr != 1 && wanted.norm_bias_lr > 0)
    options.groups.push_back(
        {[names = norm_biases(model)](const std::string& name, const Type&) { return names.contains(name); },
         wanted.norm_bias_lr, wanted.decay_all ? wanted.weight_decay / wanted.norm_bias_lr : 0.0});
  if (!wanted.decay_all)
    options.groups.push_back(
        {[](const std::string&, const Type& type) { return type.shape.rank() <= 1; }, 1, 0.0});
  return options;
}

}  // namespace

std::shared_ptr<const optim::Optimizer> make_optimizer(const Recipe& recipe, nn::Module& model) {
  const Recipe::Optimizer& wanted = recipe.train.optimizer;
  optim::Options common = common_options(recipe, model);
  std::string kind = wanted.kind;
  if (kind.starts_with("lazy-")) {
    common.lazy = true;
    kind.erase(0, 5);
  }
  if (kind == "sgd") return optim::sgd({wanted.momentum, wanted.nesterov, std::move(common)});
  if (kind == "adagrad") return optim::adagrad({.common = std::move(common)});
  const optim::AdamOptions options{wanted.betas[0], wanted.betas[1], wanted.eps, std::move(common)};
  return kind == "adam" ? optim::adam(options) : optim::adamw(options);
}

optim::Schedule make_schedule(const Recipe& recipe, int64_t steps_per_epoch, int64_t total_steps) {
  const Recipe::Schedule& wanted = recipe.train.schedule;
  const double lr = recipe.train.optimizer.lr;
  const auto steps = [&](double epochs) {
    return std::max<int64_t>(1, std::llround(epochs * static_cast<double>(steps_per_epoch)));
  };
  if (wanted.kind == "one-cycle")
    return optim::one_cycle(lr, total_steps, wanted.peak, 1 / std::max(wanted.start, 1e-9),
                            std::max(wanted.start, 1e-9) / std::max(wanted.end, 1e-12));
  if (wanted.kind == "triangle")
    return optim::triangle(lr, total_steps, wanted.peak, wanted.start, wanted.end);
  optim::Schedule schedule;
  if (wanted.kind == "constant") schedule = optim::constant(lr);
  if (wanted.kind == "step") schedule = optim::step_decay(lr, steps(wanted.every), wanted.factor);
  if (wanted.kind == "cosine") schedule = optim::cosine(lr, total_steps, lr * wanted.end);
  if (wanted.kind == "linear")
    schedule = [=, end = wanted.end](int64_t step) {
      const double part = std::min(1.0, static_cast<double>(step) / static_cast<double>(total_steps));
      return lr * (1 - (1 - end) * part);
    };
  return wanted.warmup > 0 ? optim::warm_up(schedule, steps(wanted.warmup)) : schedule;
}

}  // namespace millrace::train
