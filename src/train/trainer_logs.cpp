// What a training writes down of its steps and epochs.
#include "base/file.h"
#include "base/utc_time.h"
#include "task/recipe_items.h"
#include "track/exhibit_files.h"
#include "track/log_kind.h"
#include "track/metrics_log.h"
#include "track/recorder.h"
#include "track/tensorboard.h"
#include "train/trainer_state.h"

namespace millrace::train {

void TrainerState::open_logs(int64_t resume_step) {
  log.reset();
  std::vector<std::unique_ptr<track::Sink>> sinks;
  sinks.push_back(std::make_unique<track::MetricsLog>(run->metrics(), resume_step, !epoch_due));
  if (resume_step >= 0)
    if (const auto hours = track::numbers_of(read_text(run->metrics()), hours_key); !hours.empty())
      seconds_before = 3600 * hours.back();
  sinks.push_back(std::make_unique<track::ExhibitFiles>(run->path()));
  auto events = std::make_unique<track::EventWriter>(run->path(), resume_step);
  const std::string recipe_text = read_text(run->recipe());
  const auto keys = task::keys_and_values(recipe_text, run->recipe().string());
  if (resume_step < 0) {
    std::vector<std::string> curves = {"train/loss"};
    if (tests.feed)
      for (const std::string& name : task.metrics()) curves.push_back("test/" + name);
    events->describe(std::vector<std::pair<std::string, std::string>>(keys.begin(), keys.end()), curves);
  }
  sinks.push_back(std::move(events));
  if (!recipe().train.log.empty()) {
    const track::LoggedRun logged{run->path(), recipe().data.base, recipe_text, {keys.begin(), keys.end()},
                                  resume_step, observer.message};
    for (const std::string& text : recipe().train.log) {
      try {
        sinks.push_back(track::open_log(text, logged));
      } catch (const IoError& error) {
        fail<IoError>("{} (train.log=[] {} without)", error.what(), resume_step < 0 ? "trains" : "goes on");
      }
    }
  }
  log = std::make_unique<track::Recorder>(std::move(sinks));
}

void TrainerState::log_step(double loss, double lr, std::span<const NamedValue> metrics) {
  // Those of the outputs stand before the rate, others (the scale of the loss) behind it.
  const size_t own = sums.size();
  if (!step_names) {
    track::Names names{{"epoch", "loss"}, {"", "train/loss"}};
    const auto add = [&](const std::string& name) {
      names.keys.push_back(name);
      names.curves.push_back("train/" + name);
    };
    for (size_t i = 0; i < own; ++i) add(metrics[i].first);
    add("lr");
    for (size_t i = own; i < metrics.size(); ++i) add(metrics[i].first);
    step_names = std::make_shared<const track::Names>(std::move(names));
  }
  track::Record made{step_names, done(), unix_time(), {}};
  made.values.reserve(metrics.size() + 3);
  made.values.push_back(static_cast<double>(done()) / static_cast<double>(steps_per_epoch));
  // Of a batch that is not full the step has the sums over its samples, divided by the size of a full one.
  // Rounded as the step's values are, so that an accuracy of 1 stays 1.
  const auto of_batch = [share = batch_share()](double value) {
    return share == 1 ? value : static_cast<double>(static_cast<float>(value / share));
  };
  made.values.push_back(of_batch(loss));
  for (size_t i = 0; i < own; ++i) made.values.push_back(of_batch(metrics[i].second));
  made.values.push_back(lr);
  for (size_t i = own; i < metrics.size(); ++i) made.values.push_back(metrics[i].second);
  record([&] { log->add(std::move(made)); });
}

void TrainerState::log_values(const std::vector<Summary>& values, std::shared_ptr<const track::Names>& names,
                              bool epoch) {
  if (!names || names->keys.size() != values.size()) {
    track::Names made{{}, {}, epoch};
    for (const Summary& each : values) {
      made.keys.push_back(each.key);
      made.curves.push_back(each.curve);
    }
    names = std::make_shared<const track::Names>(std::move(made));
  }
  track::Record made{names, done(), unix_time(), {}};
  for (const Summary& each : values) made.values.push_back(each.value);
  record([&] { log->add(std::move(made)); });
}

void TrainerState::log_epoch(const std::vector<Summary>& values) {
  std::shared_ptr<const track::Names> names;
  log_values(values, names, true);
}

}  // namespace millrace::train
