// What says that a text is over must be among what is learnt.
#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "task/generate.h"

namespace millrace::check {
namespace {

/// How often a token is a target, in some batches.
int64_t times_target(Context& context, int64_t token) {
  int64_t times = 0;
  constexpr size_t batches = 8;
  const size_t count = context.task() ? batches : context.subject().batches.size();
  for (size_t b = 0; b < count; ++b) {
    const std::vector<Array>& batch = context.batch(b);
    for (const size_t at : context.subject().targets) {
      if (batch[at].dtype() != i64) continue;
      for (int64_t i = 0; i < batch[at].count(); ++i) times += batch[at].int_at(i) == token;
    }
  }
  return times;
}

Finding judge_end(Context& context, int64_t token, const std::string& name) {
  const int64_t times = times_target(context, token);
  return with_numbers(
      times > 0 ? passed(fmt::format("{} is a target {} times in the first batches", name, times))
                : failed(fmt::format("{} is never a target", name),
                         "put it behind each text, and let the last place of a text predict it: a model that "
                         "never learns where a text ends goes on for ever"),
      {{"times", times}});
}

Finding run_end_of_sequence(Context& context) {
  (void)context.batch();
  const task::Task* task = context.task();
  if (!task) {
    const int64_t token = context.subject().end_token;
    return token < 0 ? not_for("the model has no token that ends a sequence")
                     : judge_end(context, token, fmt::format("token {}", token));
  }
  for (const auto& input : task->inputs) {
    if (!input->continuable() || !input->settings().find("separator")) continue;
    const std::string& separator = input->settings().text("separator");
    const bool several = context.samples() && context.samples()->count() > 1;
    if (separator.empty())
      return several
                 ? failed(fmt::format("{} texts have nothing behind them that says where they end",
                                      context.samples()->count()),
                          "set input.separator to what ends a text (\"\\n\", or the tokenizer's end token)")
                 : not_for("there is one text, without end");
    const std::vector<int32_t> ids = input->continuable()->encode(separator);
    if (ids.empty()) return not_for("the tokenizer makes no token of input.separator");
    return judge_end(context, ids.back(), "what ends a text");
  }
  return not_for("nothing is written that could end");
}

}  // namespace

MILLRACE_CHECK_KIND(end_of_sequence){
    .name = "end-of-sequence",
    .doc = "where texts are written: what ends them is among the targets",
    .matters = "a model that is never shown an end does not know when to stop",
    .place = 190,
    .run = run_end_of_sequence,
};

}  // namespace millrace::check
