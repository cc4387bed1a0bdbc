// A training that was stopped must go on as if it had not been.
#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "check/states.h"

namespace millrace::check {
namespace {

constexpr size_t half = 3;

/// Puts a checkpoint into the model and into the step.
void restore_states(Context& context, optim::TrainStep& step, const train::Checkpoint& saved) {
  States now;
  for (const nn::Named& named : optim::tensors_of(*context.model()))
    now.emplace_back("model." + named.name, optim::value_of(named));
  for (const auto& [name, array] : step.state()) now.emplace_back("optimizer." + name, array);
  for (auto& [name, array] : now)
    if (const Array* const value = saved.tensor(name)) array.assign(*value);
  step.set_step(saved.step);
}

Finding run_resume(Context& context) {
  const double lr = context.subject().lr;
  optim::TrainStep& step = context.step();
  train::Checkpoint saved;
  for (size_t i = 0; i < 2 * half; ++i) {
    if (i == half) saved = through_file(states_of(context), static_cast<int64_t>(half));
    context.train(context.batch(i), lr);
  }
  const States whole = states_of(context);
  (void)context.step();
  // Something else happened in between, as in a process of its own.
  for (size_t i = 1; i < 3; ++i) context.train(context.batch(i), lr);
  restore_states(context, step, saved);
  for (size_t i = half; i < 2 * half; ++i) context.train(context.batch(i), lr);
  const States resumed = states_of(context);
  if (const std::string name = first_difference(whole, resumed); !name.empty())
    return failed(
        fmt::format("{} steps, saved after {} and resumed, differ from {} in one go: {}", 2 * half, half,
                    2 * half, name),
        "an optimiser may keep nothing but what state_names() says, and scalars() may depend on the "
        "step alone; the loss may keep nothing at all");
  return passed(fmt::format("{} steps, saved after {} and resumed: the same bits of {} arrays", 2 * half,
                            half, whole.size()));
}

}  // namespace

MILLRACE_CHECK_KIND(resume){
    .name = "resume",
    .doc = "steps that are saved in the middle and resumed, against the same in one go",
    .matters = "a training that stops for any reason would end somewhere else, and nobody would know",
    .place = 340,
    .run = run_resume,
};

}  // namespace millrace::check
