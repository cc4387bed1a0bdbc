// Whether the model in evaluation is the one that was trained.
#include <algorithm>
#include <cmath>

#include <millrace/operator.h>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "check/learning.h"

namespace millrace::check {
namespace {

constexpr int64_t train_eval_steps = 24;
constexpr int64_t small_batch = 8;

/// The layer of the first operation that draws random numbers; "" where none does.
std::string draws(const Graph& graph) {
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.op->random) return node.origin.empty() ? std::string(node.op->name) : node.origin.place();
    if (node.body)
      if (const std::string inner = draws(*node.body); !inner.empty()) return inner;
  }
  return {};
}

/// The mean loss of batches in evaluation mode, weights as they are.
double loss_in_evaluation(Context& context, size_t batches) {
  const Subject& s = context.subject();
  optim::EvalStep step(context.model(), s.inputs, [&](nn::Module& model, std::span<const Tensor> in) {
    return std::vector<optim::NamedTensor>{{"loss", s.loss(model, in).loss}};
  });
  double sum = 0;
  for (size_t i = 0; i < batches; ++i) sum += step.run(context.batch(i))[0].at(0);
  return sum / static_cast<double>(batches);
}

/// Rows that batch statistics are taken over in the real training.
int64_t rows_of_training(const Context& context) {
  if (!context.task()) return context.rows();
  const task::Recipe::Train& train = context.task()->recipe.train;
  return train.batch / train.accumulate;
}

Finding compare_losses(double trained, double evaluated, double before, bool statistics) {
  const std::string saw =
      fmt::format("after {} steps the loss of the same batches is {} in training and {} in evaluation",
                  train_eval_steps, short_number(trained), short_number(evaluated));
  const double learnt = std::max(before - trained, 0.0);
  // What was learnt, in training, is gone in evaluation.
  if (std::isfinite(evaluated) && evaluated < std::max(1.5 * before, trained + 2 * learnt + 0.5))
    return passed(saw);
  return warned(
      saw, statistics ? "running statistics do not follow the batches': give the norm more steps, a larger "
                        "momentum, larger batches, or take one that needs no batch (layer or group norm)"
                      : "what differs between the modes is more than noise: look at what forward() does "
                        "with training()");
}

Finding run_train_eval(Context& context) {
  (void)context.outputs(context.given(context.batch()));
  if (const std::string layer = draws(context.evaluation_graph()); !layer.empty())
    return failed(fmt::format("{} draws random numbers in evaluation", layer),
                  "draw only in training mode: `if (training())` around dropout, noise and random depth");
  optim::TrainStep& step = context.step();
  const bool statistics = !context.model()->buffers().empty();
  const int64_t rows = rows_of_training(context);
  constexpr size_t batches = 4;
  double before = 0, trained = 0;
  for (size_t i = 0; i < batches; ++i) before += context.train(context.batch(i), 0) / batches;
  const double rate = small_batch_rate(context);
  (void)context.step();
  for (int64_t i = 0; step.step() < train_eval_steps; ++i) {
    const double loss = context.train(context.batch(static_cast<size_t>(i) % batches), rate);
    if (step.step() > train_eval_steps - static_cast<int64_t>(batches)) trained += loss / batches;
  }
  Finding finding = std::isfinite(trained)
                        ? compare_losses(trained, loss_in_evaluation(context, batches), before, statistics)
                        : not_for("the loss of training is not finite; ladder tells more");
  if (statistics && rows < small_batch)
    finding = worse(
        finding, rows == 1 ? failed("statistics of a batch are those of one sample",
                                    "train with larger batches, or take a norm that needs none (layer norm)")
                           : warned(fmt::format("statistics of a batch are those of {} samples", rows),
                                    "with fewer than 8 they are noise: train with larger batches (accumulate "
                                    "less), or take a norm that needs none"));
  return with_numbers(finding, {{"training", trained}, {"rows", rows}});
}

}  // namespace

MILLRACE_CHECK_KIND(train_eval){
    .name = "train-eval",
    .doc = "training against evaluation: dropout left on, norms with small batches or old statistics",
    .matters = "what is measured and served is the model in evaluation mode: it must be the one that learnt",
    .place = 290,
    .run = run_train_eval,
};

}  // namespace millrace::check
