// How far one step moves the weights, and whether the loss or weight decay moves them.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "optim/model_scope.h"

namespace millrace::check {
namespace {

/// A matrix of weights, and what the first step made of it.
struct Moved {
  std::string name;
  double share = 0;   // of its size: the step's root mean square by its own
  double decays = 0;  // -1 … 1: does the step point to 0?
};

std::vector<Moved> moved_weights(Context& context) {
  (void)context.step();
  const std::vector<Array> before = context.weights();
  context.train(context.batch(), context.subject().lr);
  std::vector<Moved> all;
  const auto parameters = context.model()->parameters();
  for (size_t at = 0; at < parameters.size(); ++at) {
    const nn::Named& p = parameters[at];
    if (!p.trainable || p.tensor->shape().rank() < 2) continue;
    const std::vector<double> was = before[at].to_doubles(), is = optim::value_of(p).to_doubles();
    double size = 0, step = 0, inward = 0;
    for (size_t i = 0; i < was.size(); ++i) {
      const double off = is[i] - was[i];
      size += was[i] * was[i];
      step += off * off;
      inward -= off * was[i];
    }
    if (size > 0)
      all.push_back({p.name, std::sqrt(step / size), step > 0 ? inward / std::sqrt(step * size) : 0});
  }
  context.reset();
  return all;
}

Finding run_updates(Context& context) {
  std::vector<Moved> moved = moved_weights(context);
  if (moved.empty()) return not_for("there is no matrix of weights to train, or all begin at 0");
  const auto decayed =
      std::count_if(moved.begin(), moved.end(), [](const Moved& m) { return m.decays > 0.8; });
  const std::string worst = std::max_element(moved.begin(), moved.end(), [](const auto& a, const auto& b) {
                              return a.decays < b.decays;
                            })->name;
  std::sort(moved.begin(), moved.end(), [](const Moved& a, const Moved& b) { return a.share < b.share; });
  const Moved& middle = moved[moved.size() / 2];
  const std::string saw =
      fmt::format("at a learning rate of {} the first step moves weights by {} of their size",
                  short_number(context.subject().lr), share_text(middle.share));
  const Finding finding = [&] {
    if (!std::isfinite(moved.back().share))
      return failed(saw, "the step is not finite: look at the loss and the learning rate");
    if (2 * decayed > std::ssize(moved))
      return failed(
          saw + fmt::format(", most of it ({}) straight to 0: that is weight decay, not the loss", worst),
          "take a smaller weight decay (train.optimizer.weight_decay); 0.01 to 0.1 of AdamW, 1e-4 to "
          "1e-3 of SGD are usual");
    if (middle.share < 1e-6)
      return failed(saw,
                    "that is hardly a step: look at the learning rate, at clipping (train.clip_norm, "
                    "clip_value) and at the scale of the loss");
    if (middle.share > 1)
      return failed(saw,
                    "one step forgets what was there: take a smaller learning rate; was it multiplied by the "
                    "batch?");
    if (middle.share < 2e-5)
      return warned(saw, "that is little: is the learning rate too small, or clipping too tight?");
    if (middle.share > 0.4)
      return warned(saw,
                    "that is much: a smaller learning rate, or a warm-up (train.schedule.warmup), is safer");
    return passed(saw);
  }();
  return with_numbers(finding, {{"share", middle.share}, {"decayed", decayed}});
}

}  // namespace

MILLRACE_CHECK_KIND(updates){
    .name = "updates",
    .doc = "the first step: weights must move a little, by the loss and not by weight decay",
    .matters =
        "steps that are far too small learn nothing in any time, and far too large ones forget what they "
        "were given to begin with",
    .place = 282,
    .run = run_updates,
};

}  // namespace millrace::check
