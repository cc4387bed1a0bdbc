// One batch, a small set, the whole: each must be learnable before the next.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "check/learning.h"

namespace millrace::check {
namespace {

struct Rung {
  const char* name;
  size_t round;         // batches
  double share;         // of the first loss that must be reached
  LearningLimit limit;  // its loss is set
};

bool is_falling(const Learning& learning) { return learning.last < 0.8 * learning.first; }

/// With the recipe's learning rate, else with smaller ones: those of large batches and of warm-up are too
/// large for these few samples.
Learning best_learning(Context& context, const Rung& rung) {
  const auto batch = [&](size_t i) -> const std::vector<Array>& { return context.batch(i % rung.round); };
  Learning best;
  const double rate = small_batch_rate(context);
  for (const double scale : {1.0, 0.1, 0.01}) {
    Learning learning = learn(context, batch, rung.round, rate * scale, rung.limit);
    const bool better = best.steps == 0 || (learning.finite && (!best.finite || learning.last < best.last));
    if (better) best = learning;
    if (best.finite && (best.last < rung.limit.loss || is_falling(best))) break;
  }
  return best;
}

std::string text_of(const Rung& rung, const Learning& learning) {
  return fmt::format("{}: {} → {} in {} steps", rung.name, short_number(learning.first),
                     short_number(learning.last), learning.steps);
}

Finding judge_rung(Context& context, const Rung& rung, const Learning& learning) {
  const std::string saw = text_of(rung, learning);
  const bool learnt = learning.finite && learning.last < rung.limit.loss;
  const double lr = context.subject().lr;
  if (learnt && learning.lr < 0.5 * lr && rung.round == 1 && !context.task())
    return warned(saw + fmt::format(", at a learning rate of {} only", short_number(learning.lr)),
                  fmt::format("the learning rate, {}, is too large: take {}", short_number(lr),
                              short_number(learning.lr)));
  if (learnt) return passed(saw);
  if (learning.finite && is_falling(learning) && learning.steps < rung.limit.steps)
    return passed(saw + ", and falling when time was up");
  if (!learning.finite)
    return failed(saw, "the loss is not finite at any of three learning rates: look for what overflows");
  if (learning.last > 0.97 * learning.first && rung.round == 1)
    return failed(
        saw,
        "a model that cannot learn one batch by heart will not learn more: look at the loss, at the "
        "targets, at what cuts gradients off, and at the learning rate");
  return warned(saw,
                "it learns slowly: try a larger learning rate, fewer regularisers, or a larger model; where "
                "this set is small, it should be learnt by heart");
}

Finding run_ladder(Context& context) {
  (void)context.step();
  const double first = std::max(context.train(context.batch(), 0), 1e-12);
  Finding finding = passed("");
  std::vector<std::string> saw;
  std::vector<Rung> rungs = {{"one batch", 1, 0.5, {.steps = 200, .seconds = 3}},
                             {"4 batches", 4, 0.7, {.steps = 200, .seconds = 3}}};
  if (context.task()) rungs.push_back({"new batches", 8, 0.95, {}});
  for (Rung& rung : rungs) {
    const double ignorance = context.subject().ignorance;
    const double from = std::isfinite(ignorance) && ignorance > 0 ? std::min(first, ignorance) : first;
    rung.limit.loss = rung.share * from;
    const bool fresh = rung.round == 8;
    const Learning learning = fresh ? learn_new_batches(context) : best_learning(context, rung);
    Finding one = judge_rung(context, rung, learning);
    // New samples in small batches for a few seconds: that the loss does not fall yet proves nothing.
    if (fresh && one.verdict != Verdict::pass) one = passed(one.saw);
    saw.push_back(one.saw);
    finding.numbers.emplace_back(fmt::format("{} first", rung.name), learning.first);
    finding.numbers.emplace_back(fmt::format("{} last", rung.name), learning.last);
    if (one.verdict != Verdict::pass) {
      finding.verdict = one.verdict;
      finding.advice = one.advice;
      break;
    }
  }
  finding.saw = fmt::format("{}", fmt::join(saw, "; "));
  return finding;
}

}  // namespace

MILLRACE_CHECK_KIND(ladder){
    .name = "ladder",
    .doc = "one batch, a small set, new samples: each must be learnable before the next",
    .matters =
        "what cannot learn a few samples by heart has a mistake that no amount of data or time mends; it "
        "shows here in seconds",
    .place = 300,
    .run = run_ladder,
};

}  // namespace millrace::check
