#include "train/compare_runs.h"

#include <algorithm>

#include "base/file.h"
#include "base/format.h"
#include "base/number_text.h"
#include "data/tools/fingerprint.h"
#include "task/evaluate.h"
#include "task/feeds.h"
#include "task/recipe_items.h"
#include "track/metrics_log.h"
#include "train/control.h"
#include "train/load_model.h"
#include "train/origin.h"
#include "train/quarantine.h"
#include "train/run_folder.h"

namespace millrace::train {

namespace fs = std::filesystem;

namespace {

constexpr int64_t comparison_groups = 200;

using Keys = std::map<std::string, std::string>;

/// The keys of a run's recipe, then what its journal changed.
Keys keys_of(const fs::path& path) {
  const RunFolder run = RunFolder::open(path);
  Keys keys = task::keys_and_values(read_text(run.recipe()), run.recipe().string());
  for (const Applied& change : read_journal(run.journal()))
    keys[fmt::format("{}, from step {} on", change.change.key, change.step + 1)] = change.change.value_text();
  return keys;
}

std::vector<KeyDifference> differences(const Keys& first, const Keys& second) {
  std::vector<KeyDifference> found;
  const auto value = [](const Keys& keys, const std::string& key) {
    const auto at = keys.find(key);
    return at == keys.end() ? std::string() : at->second;
  };
  Keys all = first;
  all.insert(second.begin(), second.end());
  for (const auto& [key, ignored] : all)
    if (value(first, key) != value(second, key))
      found.push_back({key, value(first, key), value(second, key)});
  return found;
}

/// Facts of a run's last beginning, by what they are called.
Keys facts_of(const fs::path& path) {
  Keys facts;
  const std::vector<Origin> origins = read_origins(RunFolder::open(path));
  if (origins.empty()) return facts;
  const Origin& origin = origins.back();
  for (const auto& [role, print] : origin.data) {
    facts[role + " data"] = print.digest;
    facts[role + " samples"] = fmt::format("{}", print.samples);
  }
  facts["version"] = origin.version;
  facts["program"] = origin.program;
  facts["CPU"] = origin.cpu;
  facts["threads"] = fmt::format("{}", origin.threads);
  return facts;
}

/// One run of a side.
struct MeasuredRun {
  std::string path, data;
  data::Fingerprint print;  // of the samples; no digest of streams
  std::vector<task::OutputMeasurement> outputs;
};

MeasuredRun measure_run(const fs::path& path, const std::string& data, const Observer& observer) {
  std::vector<std::string> warnings, notes;
  task::Task task = load_model(path, warnings);
  for (const std::string& line : warnings) observer.message(line);
  if (data.empty() && !task::has_tests(task.recipe))
    fail<InputError>("the recipe of {} names no test set: say with --data what to measure on", path.string());
  task::TaskFeed set = task::open_tests(
      task, data, 0, 0,
      [&](const std::string& what, int64_t at, int64_t of) { observer.busy("reading " + what, at, of); },
      notes);
  MeasuredRun made{path.string(), set.feed->path(), {}, {}};
  if (set.samples) made.print = data::fingerprint(*set.samples);
  task::Predictor predictor(task, true, task::Weights::trained);
  made.outputs = task::measure_by_sample(
      predictor, task, set, task.metrics(), comparison_groups,
      [&](int64_t at, int64_t of) { observer.busy("measuring " + path.string(), at, of); });
  require_few_bad(*set.feed, task.recipe.data.most_bad, "Mend the data, or raise data.most_bad.");
  return made;
}

}  // namespace

Side side_of(const fs::path& path) {
  Side side{path.string(), {}};
  std::error_code ignored;
  if (!fs::exists(path / "recipe.toml", ignored))
    for (const auto& entry : fs::directory_iterator(path, ignored))
      if (entry.path().filename().string().starts_with("seed-") && fs::exists(entry.path() / "recipe.toml"))
        side.runs.push_back(entry.path());
  std::sort(side.runs.begin(), side.runs.end());
  if (side.runs.empty()) side.runs = {RunFolder::open(path).path()};
  return side;
}

std::vector<KeyDifference> recipe_differences(const Side& first, const Side& second) {
  std::vector<KeyDifference> found = differences(keys_of(first.runs.front()), keys_of(second.runs.front()));
  std::erase_if(found, [&](const KeyDifference& each) {
    return each.key == "data.base" ||
           (each.key == "train.seed" && (first.runs.size() > 1 || second.runs.size() > 1));
  });
  return found;
}

std::vector<KeyDifference> origin_differences(const Side& first, const Side& second) {
  return differences(facts_of(first.runs.front()), facts_of(second.runs.front()));
}

struct MeasuredSide::State {
  std::vector<MeasuredRun> runs;

  /// Of an output by its metrics' prefix; null where there is none.
  static const eval::Measurement* find(const MeasuredRun& run, const std::string& prefix) {
    for (const auto& [name, measured] : run.outputs)
      if (name == prefix) return &measured;
    return nullptr;
  }
  eval::Seeds seeds(const std::string& prefix) const {
    eval::Seeds all;
    for (const MeasuredRun& run : runs) all.push_back(find(run, prefix));
    return all;
  }
  std::vector<double> values(const std::string& prefix, size_t metric) const {
    std::vector<double> list;
    const std::vector<int> once(comparison_groups, 1);
    for (const MeasuredRun& run : runs) list.push_back(find(run, prefix)->resampled(metric, once));
    return list;
  }
};

MeasuredSide::MeasuredSide(const Side& side, const std::string& data, const Observer& observer)
    : state_(std::make_unique<State>()) {
  for (const fs::path& run : side.runs) {
    state_->runs.push_back(measure_run(run, data, observer));
    const MeasuredRun &first = state_->runs.front(), &last = state_->runs.back();
    if (last.print.digest != first.print.digest)
      fail<InputError>("{} and {} are tested on other data: they are no seeds of one recipe", first.path,
                       last.path);
  }
}

MeasuredSide::~MeasuredSide() = default;
MeasuredSide::MeasuredSide(MeasuredSide&&) noexcept = default;

int64_t MeasuredSide::rows() const { return state_->runs.front().outputs.front().measured.count(); }
const std::string& MeasuredSide::data() const { return state_->runs.front().data; }

namespace {

/// Where a metric of one measurement stands in another; nothing where that has none.
std::optional<size_t> place_of(const eval::Measurement& in, const eval::MetricKind* kind) {
  const auto at = std::find(in.kinds().begin(), in.kinds().end(), kind);
  return at == in.kinds().end() ? std::nullopt : std::optional<size_t>(at - in.kinds().begin());
}

}  // namespace

std::vector<MetricDifference> MeasuredSide::compare(const MeasuredSide& first, const MeasuredSide& second,
                                                    const Compared& compared) {
  const State &a = *first.state_, &b = *second.state_;
  const MeasuredRun &run = a.runs.front(), &other = b.runs.front();
  if (run.print.digest != other.print.digest)
    fail<InputError>("{} and {} are tested on other rows ({}, {}): --data DATA measures both on the same",
                     run.path, other.path, run.data, other.data);
  std::vector<MetricDifference> found;
  int64_t done = 0, all = 0;
  for (const auto& [prefix, measured] : run.outputs) all += std::ssize(measured.kinds());
  for (const auto& [prefix, measured] : run.outputs) {
    const eval::Measurement* const beside = State::find(other, prefix);
    if (!beside) continue;
    if (measured.count() != beside->count())
      fail<InputError>("{} could measure {} rows, {} {}: some are unreadable to one of them", run.path,
                       measured.count(), other.path, beside->count());
    for (size_t i = 0; i < measured.kinds().size(); ++i) {
      const eval::MetricKind& kind = *measured.kinds()[i];
      const auto place = place_of(*beside, &kind);
      ++done;
      if (!place) continue;
      MetricDifference each{prefix + kind.name, kind.share, kind.higher_is_better, {}, {}, {}};
      each.rows = eval::compare_rows(a.seeds(prefix), b.seeds(prefix), i, *place);
      if (a.runs.size() == 1 && b.runs.size() == 1)
        each.answers = eval::compare_answers(measured, *beside, i, *place);
      each.seeds = eval::compare_seeds(a.values(prefix, i), b.values(prefix, *place));
      found.push_back(std::move(each));
      if (compared) compared(done, all);
    }
  }
  if (found.empty())
    fail<InputError>("{} and {} have no metric in common: name one for both (eval.metrics)", run.path,
                     other.path);
  return found;
}

std::string unfinished(const fs::path& path) {
  const RunFolder run = RunFolder::open(path);
  std::error_code ignored;
  if (!fs::exists(run.model(), ignored)) return "was stopped before its end";
  std::vector<double> losses;
  if (fs::exists(run.metrics(), ignored))
    losses = track::numbers_of(read_text(run.metrics()), "train/loss");  // of its epochs
  if (losses.size() < 4) return {};
  // A training that has converged does not gain a twentieth of all that it gained in its last quarter.
  const size_t quarter = losses.size() - std::max<size_t>(1, losses.size() / 4) - 1;
  const double gained = losses.front() - losses.back(), late = losses[quarter] - losses.back();
  if (!(gained > 0) || late < 0.05 * gained) return {};
  return fmt::format(
      "still learned when it ended: its loss fell from {} to {} in the last quarter of its epochs",
      number_text(losses[quarter]), number_text(losses.back()));
}

std::vector<std::string> unfinished_runs(std::span<const fs::path> runs) {
  std::vector<std::string> lines;
  for (const fs::path& run : runs)
    if (const std::string why = unfinished(run); !why.empty())
      lines.push_back(fmt::format("{} {}", run.string(), why));
  return lines;
}

}  // namespace millrace::train
