#include "train/scale.h"

#include <algorithm>
#include <cmath>

#include "base/contains.h"
#include "base/file.h"
#include "base/format.h"
#include "data/table/part_of.h"
#include "nn/models/architecture.h"
#include "task/evaluate.h"
#include "train/compare_runs.h"
#include "train/load_model.h"
#include "train/loss_proxy.h"
#include "train/run_folder.h"

namespace millrace::train {

namespace fs = std::filesystem;

namespace {

constexpr double least_steps = 0.25;  // of the whole training's

/// "1_16", "2", "0.3": for names of folders.
std::string size_name(double size) {
  const double parts = 1 / size;
  return size < 1 && parts == std::round(parts) ? fmt::format("1_{:.0f}", parts)
                                                : fmt::format("{:.4g}", size);
}

/// What the recipe has of the number that is varied.
int64_t number_of_model(const task::Recipe& recipe, const std::string& by) {
  const std::string name = by.substr(std::min(by.find('.') + 1, by.size()));
  if (!by.starts_with("model.") || name.empty())
    fail<InputError>("--by {}: it is data, or a whole number of the model, as model.width", by);
  const auto written = recipe.model.items.find(name);
  if (written != recipe.model.items.end())
    if (const auto* value = std::get_if<int64_t>(&written->second.value)) return *value;
  const nn::Architecture* kind = nn::architectures().find(recipe.model.kind);
  if (kind)
    for (const Setting& setting : kind->settings)
      if (const auto* usual = std::get_if<int64_t>(&setting.usual); usual && setting.name == name)
        return *usual;
  fail<InputError>("--by {}: {} has no whole number of this name: give it in the recipe", by,
                   recipe.model.kind.empty() ? "a model whose kind the recipe does not say (model.kind)"
                                             : fmt::format("the model '{}'", recipe.model.kind));
}

/// That part of the data that the recipe has, which may be a part itself.
std::string part_text(const task::Recipe& recipe, double size) {
  if (recipe.data.sample.empty()) return fmt::format("{:.10g}%", 100 * size);
  const auto whole = data::PartSize::parse(recipe.data.sample);
  if (whole.share > 0) return fmt::format("{:.10g}%", 100 * whole.share * size);
  return fmt::format("{}", std::max<int64_t>(1, std::llround(static_cast<double>(whole.count) * size)));
}

}  // namespace

std::vector<double> usual_sizes(const ScaleAxis& axis) {
  return axis.of_data() ? std::vector<double>{1. / 16, 1. / 8, 1. / 4, 1. / 2, 1}
                        : std::vector<double>{1. / 4, 1. / 2, 1, 2};
}

std::vector<ScaleRun> scale_runs(const task::Recipe& recipe, const ScaleAxis& axis, const fs::path& folder) {
  if (axis.seeds < 1 || axis.seeds > 100) fail<InputError>("--seeds is from 1 to 100, not {}", axis.seeds);
  if (!task::has_tests(recipe))
    fail<InputError>(
        "the recipe names no test set, so that no error is known: set data.test, or data.test_share = 0.2");
  if (axis.of_data() && recipe.data.stream)
    fail<InputError>("of a stream no part can be taken: index the data and train without data.stream");
  std::vector<double> sizes = axis.sizes.empty() ? usual_sizes(axis) : axis.sizes;
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  const int64_t number = axis.of_data() ? 0 : number_of_model(recipe, axis.by);
  std::vector<ScaleRun> runs;
  for (const double size : sizes) {
    if (!(size > 0) || (axis.of_data() && size > 1))
      fail<InputError>("--sizes {:.4g}: {}", size,
                       axis.of_data() ? "a part of the data is above 0 and at most 1" : "a size is above 0");
    const double longer = axis.of_data() ? std::max(1.0, least_steps / size) : 1;
    const int64_t seeds = axis.of_data() && size == 1 ? 1 : axis.seeds;
    for (int64_t i = 0; i < seeds; ++i) {
      ScaleRun run{size, recipe.train.seed + i, {}, {}, size};
      run.path = folder / fmt::format("{}-{}-seed-{}", axis.by, size_name(size), i + 1);
      run.changes = {fmt::format("train.seed={}", run.seed)};
      if (axis.of_data() && size < 1) run.changes.push_back("data.sample=" + part_text(recipe, size));
      if (longer > 1 && recipe.train.steps == 0)
        run.changes.push_back(fmt::format("train.epochs={:.10g}", recipe.train.epochs * longer));
      if (axis.of_data()) run.work = recipe.train.steps > 0 ? 1 : size * longer;
      if (!axis.of_data())
        run.changes.push_back(fmt::format(
            "{}={}", axis.by, std::max<int64_t>(1, std::llround(static_cast<double>(number) * size))));
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

bool is_finished(const ScaleRun& run) {
  std::error_code ignored;
  return fs::exists(run.path / "recipe.toml", ignored) &&
         fs::exists(RunFolder::open(run.path).model(), ignored);
}

void claim_scale_folder(const fs::path& folder, const task::Recipe& recipe, const ScaleAxis& axis) {
  const std::string text = fmt::format("# by {}\n{}", axis.by, task::recipe_toml(recipe));
  const fs::path mark = folder / "scale.toml";
  std::error_code ignored;
  if (fs::exists(mark, ignored)) {
    if (read_text(mark) != text)
      fail<InputError>(
          "{} holds trainings of another recipe, or of other changes of it; choose another folder "
          "with --out, or remove it",
          folder.string());
    return;
  }
  if (fs::exists(folder / "recipe.toml", ignored))
    fail<InputError>("{} is a run of its own; choose another folder with --out", folder.string());
  fs::create_directories(folder, ignored);
  write_file(mark, text);
}

ScaleFinding read_scale(const std::vector<ScaleRun>& runs, const std::string& metric, int64_t batch) {
  ScaleFinding found;
  std::vector<fs::path> paths;
  for (const ScaleRun& run : runs)
    if (is_finished(run)) {
      found.runs.push_back(run);
      paths.push_back(run.path);
    }
  if (found.runs.empty()) fail<InputError>("no training is finished yet");
  std::vector<std::string> warnings;
  const task::Task task = load_model(paths.back(), warnings);
  const std::vector<std::string> metrics = task.metrics();
  found.metric = metric.empty() ? metrics.at(0) : metric;
  if (!contains(metrics, found.metric))
    fail<InputError>("--metric {}: the trainings report {}", metric, fmt::join(metrics, ", "));
  const eval::MetricKind& kind = task::metric_of(found.metric);
  found.share = kind.share;
  found.higher_is_better = kind.higher_is_better;
  constexpr double none = 1e-6;  // an error of 0 is one that was too small for the test
  for (const ScaleRun& run : found.runs) {
    const LossProxy tested =
        read_loss_proxy(RunFolder::open(run.path).metrics(), found.metric, kind.higher_is_better);
    if (tested.values.empty())
      fail<InputError>("{} has no test {} in its metrics: remove the folder to train it again",
                       run.path.string(), found.metric);
    const double value = tested.values.back();
    found.points.push_back({run.size, std::max(none, kind.higher_is_better ? 1 - value : value)});
  }
  found.unfinished = unfinished_runs(paths);
  for (const ScaleRun& run : found.runs)
    if (const int64_t own = recipe_of(run.path).train.batch; own < batch)
      found.small.push_back(fmt::format("{} has batches of {}, as its samples do not fill one of {}",
                                        run.path.string(), own, batch));
  return found;
}

}  // namespace millrace::train
