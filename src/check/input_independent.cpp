// A model that is given nothing must do worse.
#include <cmath>
#include <cstring>

#include "base/contains.h"
#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "check/learning.h"
#include "check/rows.h"

namespace millrace::check {
namespace {

/// The batch with zeros for all that the model is given, and what else is no target (masks that are drawn)
/// the same in all rows.
std::vector<Array> without_inputs(Context& context, const std::vector<Array>& batch) {
  const Subject& s = context.subject();
  const std::vector<int64_t> first(static_cast<size_t>(context.rows()), 0);
  std::vector<Array> changed;
  for (size_t i = 0; i < batch.size(); ++i) {
    changed.push_back(contains(s.given, i)     ? Array(batch[i].type())
                      : contains(s.targets, i) ? batch[i]
                                               : with_rows(batch[i], first));
  }
  return changed;
}

/// Do rows of different targets get the same?
bool outputs_are_alike(Context& context) {
  const std::vector<Array> outputs = context.outputs(context.given(context.batch()));
  for (const Array& output : outputs) {
    const int64_t rows = context.rows();
    if (output.shape().rank() < 1 || output.shape()[0].size() != rows) return false;
    const auto bytes = static_cast<size_t>(output.bytes() / rows);
    const auto* at = static_cast<const std::byte*>(output.data());
    for (int64_t r = 1; r < rows; ++r)
      if (std::memcmp(at, at + static_cast<size_t>(r) * bytes, bytes) != 0) return false;
  }
  return true;
}

Finding run_input_independent(Context& context) {
  constexpr int64_t few = 4;  // rows are learnt by heart in their order, whatever stands in them
  if (context.rows() < few) return not_for(fmt::format("a batch has {} rows", context.rows()));
  constexpr size_t batches = 2;
  constexpr int64_t steps = 80;
  const LearningLimit limit{.loss = -INFINITY, .steps = steps, .seconds = 3};
  std::vector<std::vector<Array>> blind;
  for (size_t i = 0; i < batches; ++i) blind.push_back(without_inputs(context, context.batch(i)));
  Learning seeing, not_seeing;
  const double rate = small_batch_rate(context);
  for (const double scale : {1.0, 0.1}) {
    const double lr = rate * scale;
    seeing = learn(
        context, [&](size_t i) -> const std::vector<Array>& { return context.batch(i % batches); }, batches,
        lr, limit);
    if (seeing.finite && seeing.last < 0.8 * seeing.first) break;
  }
  const bool alike = outputs_are_alike(context);
  LearningLimit same = limit;
  same.steps = seeing.steps;
  not_seeing = learn(
      context, [&](size_t i) -> const std::vector<Array>& { return blind[i % batches]; }, batches, seeing.lr,
      same);
  const std::string saw =
      fmt::format("{} steps on {} batches end at {} with inputs, at {} with zeros for them", seeing.steps,
                  batches, short_number(seeing.last), short_number(not_seeing.last));
  const Finding finding = [&] {
    if (alike)
      return failed(saw + "; the outputs of all samples are the same",
                    "the model does not see its inputs: look at how batches are made, at what zeroes or "
                    "saturates them, and at layers that are off");
    if (!seeing.finite) return not_for("the loss is not finite; ladder tells more");
    // Statistics of nothing but zeros may well be no numbers.
    if (!not_seeing.finite && seeing.last < 0.9 * seeing.first) return passed(saw);
    if (seeing.last < 0.95 * not_seeing.last) return passed(saw);
    const double gained = not_seeing.first - not_seeing.last;
    if (seeing.first - seeing.last > 1.2 * gained && seeing.last < not_seeing.last) return passed(saw);
    return warned(saw,
                  "inputs help hardly more than zeros: look at how batches are made (do rows keep their "
                  "targets?), at the scale of inputs, and at the learning rate");
  }();
  return with_numbers(finding, {{"with_inputs", seeing.last}, {"with_zeros", not_seeing.last}});
}

}  // namespace

MILLRACE_CHECK_KIND(input_independent){
    .name = "input-independent",
    .doc = "a short training with zeros for inputs must end worse than one with them",
    .matters = "a model that learns as much from zeros as from its inputs only learns how often what occurs",
    .place = 310,
    .run = run_input_independent,
};

}  // namespace millrace::check
