// What a recipe plans for the whole training: enough steps, a rate that trains in most of them, an average
// that forgets how it began.
#include "optim/schedules/schedule.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "optim/kinds.h"
#include "train/trainer_state.h"

namespace millrace::check {
namespace {

constexpr int64_t few_steps = 20;

/// The rates of steps from all over a training.
std::vector<double> rates_of(const optim::Schedule& schedule, int64_t steps) {
  constexpr int64_t most = 4096;
  const int64_t count = std::min(steps, most);
  std::vector<double> rates;
  for (int64_t i = 0; i < count; ++i)
    rates.push_back(schedule(count > 1 ? i * (steps - 1) / (count - 1) : 0));
  return rates;
}

Finding judge_rates(const std::vector<double>& rates, double lr, int64_t steps) {
  const double most = *std::max_element(rates.begin(), rates.end());
  const auto idle = static_cast<double>(
      std::count_if(rates.begin(), rates.end(), [&](double rate) { return rate < 1e-3 * lr; }));
  const double share = idle / static_cast<double>(rates.size());
  const std::string saw = fmt::format("{} steps; the rate comes to {}, and is next to nothing in {} of them",
                                      steps, short_number(most), share_text(share));
  Finding finding = passed(saw);
  constexpr double least_reached = 0.5, most_idle = 0.5;
  if (most < least_reached * lr)
    finding = warned(fmt::format("in {} steps the rate comes to {}, not to train.optimizer.lr = {}", steps,
                                 short_number(most), short_number(lr)),
                     "is the warm-up (train.schedule.warmup, in epochs) longer than the training, or "
                     "train.lr_scale small?");
  else if (share > most_idle)
    finding = warned(saw,
                     "most of the training does nothing: let train.schedule go down over all of it "
                     "(\"cosine\", \"linear\"), or seldomer and by less (\"step\": every, factor)");
  return with_numbers(finding, {{"steps", steps}, {"highest_rate", most}, {"share_without_rate", share}});
}

Finding judge_average(double decay, int64_t steps) {
  const double reach = 1 / (1 - decay);
  const std::string saw = fmt::format("the average of weights (train.ema = {}) reaches {} steps back", decay,
                                      short_number(reach));
  return 2 * reach > static_cast<double>(steps)
             ? warned(
                   saw + fmt::format(", and the training has {}", steps),
                   fmt::format("what is tested and exported would have much of the weights at the beginning: "
                               "take a smaller one, such as {}",
                               short_number(std::max(0.0, 1 - 10 / static_cast<double>(steps)))))
             : passed(saw);
}

Finding run_schedule(Context& context) {
  if (!context.task()) return not_for("a model of C++ has no recipe");
  if (context.fitted()) return not_for("the model is fitted to all samples at once");
  const task::Recipe& recipe = context.task()->recipe;
  const task::Recipe::Train& train = recipe.train;
  if (optim::optimizer_kinds().at(train.optimizer.kind).whole)
    return not_for(fmt::format("{} finds its steps itself", train.optimizer.kind));
  const int64_t epoch = context.training()->feed->batches_per_epoch();
  if (epoch < 1) return not_for("it is not known how many batches an epoch has");
  const int64_t steps = train::TrainerState::steps_of(recipe, epoch);
  const double lr = optim::learning_rate(train.optimizer.settings);
  const optim::Schedule schedule = optim::make_schedule(optim::schedule_kinds().at(train.schedule.kind),
                                                        train.schedule.settings, {lr, epoch, steps});
  std::vector<double> rates = rates_of(schedule, steps);
  for (double& rate : rates) rate *= train.lr_scale;
  Finding finding = judge_rates(rates, lr, steps);
  if (train.ema > 0) finding = worse(finding, judge_average(train.ema, steps));
  if (steps < few_steps)
    finding =
        worse(finding, warned(fmt::format("the training has {} step{} in all", steps, steps == 1 ? "" : "s"),
                              "weights move a little in each step only: take more epochs (train.epochs), or "
                              "smaller batches (train.batch)"));
  return finding;
}

}  // namespace

MILLRACE_CHECK_KIND(schedule){
    .name = "schedule",
    .doc = "the plan of a training: enough steps, a learning rate in most of them, an average that forgets",
    .matters =
        "a rate that is gone after a moment, or never comes to what was set, wastes all of a training that "
        "looks as if it went on",
    .place = 302,
    .run = run_schedule,
};

}  // namespace millrace::check
