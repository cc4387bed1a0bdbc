// The loss of the first batches against what a model that knows nothing would lose.
#include <cmath>
#include <limits>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"

namespace millrace::check {
namespace {

constexpr size_t loss_batches = 8;

struct FirstLosses {
  double mean = 0, error = 0;  // error: standard error of the mean
};

FirstLosses first_losses(Context& context) {
  (void)context.step();
  std::vector<double> losses;
  for (size_t i = 0; i < loss_batches; ++i) losses.push_back(context.train(context.batch(i), 0));
  FirstLosses all;
  for (const double loss : losses) all.mean += loss / static_cast<double>(losses.size());
  double squares = 0;
  for (const double loss : losses) squares += (loss - all.mean) * (loss - all.mean);
  const auto count = static_cast<double>(losses.size());
  all.error = std::sqrt(squares / (count - 1) / count);
  return all;
}

/// Loss of logits that are all 0: of classes, that each is as likely; NaN where it is not known.
double level_loss(Context& context) {
  const task::Task* task = context.task();
  if (!task) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (size_t k = 0; k < task->outputs.size(); ++k) {
    const task::Output& output = *task->outputs[k];
    if (output.at_places()) return std::log(static_cast<double>(output.width()));
    const Array& targets = context.batch()[context.subject().targets[k]];
    const Tensor logits = Tensor::zeros({targets.shape()[0].size(), output.width()});
    sum += output.weight() * static_cast<double>(output.loss(logits, Tensor(targets), true).item());
  }
  return sum;
}

bool is_trained(const Context& context) {
  return context.task() && !context.task()->recipe.train.init_from.empty();
}

Finding judge_loss(Context& context, const FirstLosses& first, double ignorance, double level) {
  const double usual = std::isnan(level) ? ignorance : std::max(ignorance, level);
  const std::string saw =
      fmt::format("the loss begins at {} ± {}; knowing nothing loses {}", short_number(first.mean),
                  short_number(first.error), short_number(ignorance));
  if (!std::isfinite(first.mean))
    return failed(fmt::format("the loss of the first batches is {}", first.mean),
                  "look for a logarithm, root or division of 0, and for inputs that are not finite");
  if (std::isnan(ignorance)) return passed(fmt::format("the loss begins at {}", short_number(first.mean)));
  // A few huge amounts are most of what knowing nothing loses, and may be in none of these batches.
  const double least = std::isnan(level) ? ignorance : std::min(ignorance, level);
  if (!is_trained(context) && first.mean + 3 * first.error < 0.6 * least)
    return failed(saw + ": less, before anything was learnt",
                  "the target may be among the inputs, the loss may be divided by too much, or count rows "
                  "that are padding; look for what the model sees of its targets");
  if (first.mean - 3 * first.error > 10 * usual)
    return failed(saw + fmt::format(": {} times as much", short_number(first.mean / usual)),
                  "the outputs are far too large at first: draw smaller weights for the last layer, scale "
                  "inputs and targets (standardise), or divide a sum of losses by what it counts");
  if (first.mean - 3 * first.error > 2 * usual)
    return warned(saw + fmt::format(": {} times as much", short_number(first.mean / usual)),
                  "the first steps only unlearn the drawn weights: draw smaller ones for the last layer, or "
                  "begin with it at zero");
  if (usual > 2 * ignorance && first.mean > 1.5 * ignorance)
    return warned(saw,
                  "classes are far from balanced: begin with the last layer's bias at the logarithm of each "
                  "class's share (of one label log(p / (1 - p))), and the first steps need not learn that");
  return passed(saw);
}

Finding run_initial_loss(Context& context) {
  const FirstLosses first = first_losses(context);
  const double ignorance = context.subject().ignorance, level = level_loss(context);
  return with_numbers(judge_loss(context, first, ignorance, level),
                      {{"loss", first.mean}, {"error", first.error}, {"ignorance", ignorance}});
}

}  // namespace

MILLRACE_CHECK_KIND(initial_loss){
    .name = "initial-loss",
    .doc = "the loss at initialisation against what a model that knows nothing would lose",
    .matters =
        "a loss that begins elsewhere says that outputs are too large, that the loss is not what it should "
        "be, or that the model sees what it is to predict",
    .place = 200,
    .run = run_initial_loss,
};

}  // namespace millrace::check
