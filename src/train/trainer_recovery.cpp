// What becomes of a training whose step was bad (bad_steps.h): train.on_bad_step.
#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/format.h"
#include "base/utc_time.h"
#include "optim/model_scope.h"
#include "task/model.h"
#include "train/checkpoint.h"
#include "train/checkpoint_writer.h"
#include "train/load_model.h"
#include "train/passes.h"
#include "train/trainer_state.h"

namespace millrace::train {
namespace {

bool is_finite(const Array& array) {
  if (!array.dtype().is_float()) return true;
  const std::vector<double> values = array.to_doubles();
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

std::string loss_text(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.4g}", loss)
         : std::isnan(loss)  ? "NaN"
         : loss > 0          ? "infinite"
                             : "minus infinite";
}

}  // namespace

bool TrainerState::guards(const task::Recipe& recipe) {
  return recipe.train.on_bad_step != "stop" || recipe.train.loss_spike > 0;
}

std::string TrainerState::loss_of_step(double loss) const {
  std::vector<std::string> outputs;
  for (const auto& [name, value] : step->metrics())
    if (name.ends_with(".loss") && !std::isfinite(value)) outputs.push_back(name.substr(0, name.size() - 5));
  return fmt::format("the loss of step {} is {}{}", done(), loss_text(loss),
                     outputs.empty() ? "" : fmt::format(" (that of {})", fmt::join(outputs, ", ")));
}

std::string TrainerState::why_bad(double loss) const {
  if (std::isfinite(loss) && loss > losses.limit(recipe().train.loss_spike))
    return fmt::format("the loss of step {} is {}, {:.3g} robust deviations above the median of the last {}",
                       done(), loss_text(loss), losses.deviations(loss), losses.losses().size());
  std::string first = step->find_non_finite();
  if (first.empty()) first = "no operation repeats it";
  if (first.starts_with("parameter"))
    first +=
        " (the gradient of the step before overflowed: with train.clip_norm the operation that did it is "
        "named)";
  return fmt::format("{}: {}",
                     std::isfinite(loss) ? fmt::format("the gradients of step {} are not finite", done())
                                         : loss_of_step(loss),
                     first);
}

void TrainerState::judge_step(double loss) {
  if (step->sound()) {
    bad_in_row = 0;
    if (recipe().train.loss_spike > 0 && !rehearsing) losses.add(loss);
    return;
  }
  const task::Recipe::Train& train = recipe().train;
  ++bad_in_row;
  ++bad_in_epoch;
  if (passes && passes->begun())
    return;  // the pass has measured an infinite loss, and a nearer point follows
  if (!run || train.on_bad_step == "stop") stop_at_bad_step(why_bad(loss), "");
  // Naming the operation compiles the step once more, so it is done for the first of several.
  const std::string why = bad_in_row == 1 ? why_bad(loss) : loss_of_step(loss);
  if (train.on_bad_step == "rollback") {
    if (rollbacks >= train.most_rollbacks)
      stop_at_bad_step(why, fmt::format(" after {} rollbacks (train.most_rollbacks)", rollbacks));
    roll_back(why);
    return;
  }
  ++bad_steps;
  note_bad_step({done(), "skipped", why});
  if (bad_in_row < train.most_bad_steps) return;
  stop_at_bad_step(why,
                   fmt::format(", the last of {} bad steps in a row (train.most_bad_steps)", bad_in_row));
}

void TrainerState::stop_at_bad_step(const std::string& why, const std::string& which) {
  if (writer) writer->wait();
  const auto kept = run ? list_checkpoints(run->checkpoints()) : std::vector<std::filesystem::path>{};
  if (passes)
    fail<Error>(
        "{}. These are the weights that the model began with: look for samples far from all others, "
        "or take another model, or another train.seed.",
        why);
  fail<Error>(
      "{}{}. A smaller train.optimizer.lr (now {}), train.clip_norm or train.schedule.warmup may help{}; {} "
      "holds the last sound weights.",
      why, which, recipe().train.optimizer.settings.number("lr"),
      recipe().train.on_bad_step == "stop" && run
          ? ", and train.on_bad_step = \"skip\" or \"rollback\" goes on without the step"
          : "",
      kept.empty() ? "no checkpoint" : kept.back().string());
}

void TrainerState::note_bad_step(BadStep noted) {
  noted.time = utc_time();
  record([&] { write_bad_step(run->bad_steps(), noted); });
  observer.message(bad_step_text(noted));
}

Checkpoint TrainerState::rollback_target() {
  if (writer) writer->wait();
  const auto files = list_checkpoints(run->checkpoints());
  const std::string newest = checkpoint_name(rollback_step);
  for (auto path = files.rbegin(); path != files.rend(); ++path) {
    // Those that the time of day or a stop led to are no targets: a run that was never stopped has none.
    if (path->filename().string() > newest) continue;
    try {
      Checkpoint found = read_checkpoint(*path);
      const auto odd = std::find_if(found.tensors.begin(), found.tensors.end(),
                                    [](const auto& named) { return !is_finite(named.second); });
      if (odd == found.tensors.end()) return found;
      observer.message(fmt::format("{} is passed over: its {} is not finite", path->string(), odd->first));
    } catch (const Error& error) {
      observer.message(fmt::format("damaged checkpoint passed over: {}", error.what()));
    }
  }
  fail<Error>("step {} is bad, and there is no sound checkpoint in {} to go back to", done(),
              run->checkpoints().string());
}

void TrainerState::roll_back(const std::string& why) {
  const int64_t at = done();
  const Checkpoint from = rollback_target();
  for (const nn::Named& named : optim::tensors_of(*task.network)) {
    Array array = optim::value_of(named);
    restore_array(from, "model." + named.name, array);
  }
  restore_weights(from);
  step->set_step(at, at - from.step + step->left_out());
  rollback_factor *= recipe().train.rollback_lr;
  ++rollbacks;
  bad_in_row = 0;
  note_bad_step({at, "rolled back", why, from.step, rollback_factor});
  rolled_back = true;
}

}  // namespace millrace::train
