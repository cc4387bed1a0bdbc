// What more data, or a larger model, would give: trainings of several sizes, and a law through their errors.
#include "train/scale.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fmt/core.h>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "base/number_text.h"
#include "base/seconds_since.h"
#include "base/words.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/outputs.h"
#include "cli/plot.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "train/trainer.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct ScaleArguments {
  std::string recipe, out, sizes, metric, svg, by = "data";
  std::vector<std::string> overrides;
  int64_t seeds = 2;
  double minutes = 0;
  bool json = false;
};

/// "1/8", "0.25", "2"
double size_of(const std::string& text) {
  const auto number = [&](const std::string& digits) {
    char* end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    if (digits.empty() || *end != 0 || !(value > 0))
      fail<InputError>("--sizes: '{}' is no size; write 1/16,1/8,1/4,1/2,1", text);
    return value;
  };
  const size_t slash = text.find('/');
  return slash == std::string::npos ? number(text)
                                    : number(text.substr(0, slash)) / number(text.substr(slash + 1));
}

std::vector<double> sizes_of(const std::string& text) {
  std::vector<double> sizes;
  for (const std::string& size : split_list(text)) sizes.push_back(size_of(size));
  return sizes;
}

/// "1/16", "2": as a share or multiple of what the recipe has.
std::string size_text(double size) {
  const double parts = 1 / size;
  return size < 1 && std::abs(parts - std::round(parts)) < 1e-9 ? fmt::format("1/{:.0f}", parts)
                                                                : fmt::format("{:.4g}", size);
}

/// The trainings that are not there yet. Ctrl-C and a full budget end them; what is done stays.
class ScaleTrainings {
 public:
  ScaleTrainings(const ScaleArguments& a, std::vector<train::ScaleRun> runs)
      : a_(a), runs_(std::move(runs)), progress_(a.json ? stderr : stdout) {
    for (const train::ScaleRun& run : runs_)
      if (!train::is_finished(run)) left_ += run.work;
  }

  /// False when it was stopped.
  bool all() {
    for (size_t i = 0; i < runs_.size(); ++i) {
      const train::ScaleRun& run = runs_[i];
      if (train::is_finished(run)) continue;
      if (a_.minutes > 0 && done_ > 0 && seconds() + expected(run.work) > 60 * a_.minutes) {
        out_of_time_ = true;
        break;
      }
      what_ = fmt::format("training {} of {} ({}, seed {})", i + 1, runs_.size(),
                          a_.by == "data" ? size_text(run.size) + " of the data"
                                          : fmt::format("{} × {}", a_.by, size_text(run.size)),
                          run.seed);
      try {
        if (!one(run)) return false;
      } catch (const InputError& error) {
        if (a_.by != "data" || run.size == 1) throw;
        // A part may be too small to be trained on or measured with.
        left_out_.push_back(
            fmt::format("{} of the data, seed {}: {}", size_text(run.size), run.seed, error.what()));
      }
      done_ += run.work;
      left_ -= run.work;
    }
    progress_.finish();
    return true;
  }
  bool out_of_time() const { return out_of_time_; }
  /// What was not trained, and why.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  double seconds() const { return seconds_since(begin_); }
  double expected(double work) const { return seconds() / done_ * work; }

  train::Observer observer() {
    train::Observer observer;
    observer.stop = interrupted;
    observer.step = [&](const train::Status& status) {
      const bool last = status.step == status.steps;
      if (!progress_.due(last)) return;
      std::string all = what_;
      if (done_ > 0) all += fmt::format(", {} for all", duration_text(expected(left_)));
      const size_t columns = progress_.columns();
      all += ": ";
      progress_.update(all + status_line(status, columns > all.size() ? columns - all.size() : 1), last);
    };
    observer.busy = [&](const std::string& what, int64_t done, int64_t total) {
      progress_.count(what_ + ", " + what + ": ", done, total);
    };
    return observer;
  }

  bool one(const train::ScaleRun& run) {
    std::error_code ignored;
    train::Outcome outcome;
    if (fs::exists(run.path / "recipe.toml", ignored)) {
      const auto there = train::RunFolder::open(run.path);
      train::Trainer trainer(train::recipe_of(there.path()), observer());
      trainer.resume(there);
      outcome = trainer.run();
    } else {
      std::vector<std::string> overrides = a_.overrides;
      overrides.insert(overrides.end(), run.changes.begin(), run.changes.end());
      train::Trainer trainer(train::recipe_of(a_.recipe, overrides), observer());
      trainer.begin(run.path, "");
      outcome = trainer.run();
    }
    return outcome.finished;
  }

  const ScaleArguments& a_;
  std::vector<train::ScaleRun> runs_;
  Progress progress_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double done_ = 0, left_ = 0;
  bool out_of_time_ = false;
  std::string what_;
  std::vector<std::string> left_out_;
};

/// Sizes that nobody trained on and that are told of: twice and ten times the largest.
std::vector<double> larger_sizes(const train::ScaleFinding& found) {
  const double largest = found.runs.back().size;
  return {2 * largest, 10 * largest};
}

struct Curve {
  std::vector<double> sizes, values, lows, highs;
};

Curve curve_of(const eval::ScaleFit& fit, double from, double to) {
  constexpr int points = 72;
  Curve curve;
  for (int i = 0; i < points; ++i) {
    const double size = from * std::pow(to / from, i / (points - 1.0));
    const eval::ScaleValue value = fit.at(size);
    curve.sizes.push_back(size);
    curve.values.push_back(value.value);
    curve.lows.push_back(value.low);
    curve.highs.push_back(value.high);
  }
  return curve;
}

PlotRange scale_range(const train::ScaleFinding& found, const Curve& curve, const std::string& by) {
  PlotRange range{curve.sizes.front(),
                  curve.sizes.back(),
                  0,
                  0,
                  by == "data" ? "of data" : by.substr(by.find('.') + 1),
                  {}};
  for (const eval::ScalePoint& point : found.points) range.high = std::max(range.high, 1.05 * point.error);
  std::set<double> sizes;
  for (const eval::ScalePoint& point : found.points) sizes.insert(point.size);
  for (const double size : larger_sizes(found)) sizes.insert(size);
  for (const double size : sizes) range.ticks.emplace_back(size, size_text(size));
  return range;
}

std::string scale_plot(const train::ScaleFinding& found, const Curve& curve, const std::string& by) {
  TextPlot plot(scale_range(found, curve, by));
  for (size_t i = 0; i < curve.sizes.size(); ++i) {
    plot.mark(curve.sizes[i], curve.lows[i], '.');
    plot.mark(curve.sizes[i], curve.highs[i], '.');
  }
  for (size_t i = 0; i < curve.sizes.size(); ++i) plot.mark(curve.sizes[i], curve.values[i], '-');
  for (const eval::ScalePoint& point : found.points) plot.mark(point.size, point.error, 'o');
  return plot.text();
}

std::string scale_svg(const train::ScaleFinding& found, const Curve& curve, const std::string& by) {
  SvgPlot plot(scale_range(found, curve, by), found.higher_is_better ? "1 - " + found.metric : found.metric);
  plot.band(curve.sizes, curve.lows, curve.highs, "#dbe8f6");
  plot.line(curve.sizes, curve.values, "#2f7ed8");
  std::vector<double> x, y;
  for (const eval::ScalePoint& point : found.points) {
    x.push_back(point.size);
    y.push_back(point.error);
  }
  plot.dots(x, y, "#d9822b", 4);
  return plot.text();
}

/// An error as the metric that was reported.
std::string metric_value(const train::ScaleFinding& found, double error) {
  const double value = found.metric_of(error);
  return found.share ? fmt::format("{:.2f} %", 100 * value) : number_text(value);
}

std::string interval_value(const train::ScaleFinding& found, const eval::ScaleValue& value) {
  if (!std::isfinite(value.high)) return "anything";
  const double low = found.higher_is_better ? value.high : value.low,
               high = found.higher_is_better ? value.low : value.high;
  return fmt::format("{} to {}", metric_value(found, low), metric_value(found, high));
}

Json scale_json(const ScaleArguments& a, const train::ScaleFinding& found, const eval::ScaleFit& fit,
                const ScaleTrainings& trained) {
  std::vector<Json> trainings, larger;
  for (size_t i = 0; i < found.runs.size(); ++i)
    trainings.push_back(json_object({{"size", Json(found.runs[i].size)},
                                     {"seed", found.runs[i].seed},
                                     {"run", found.runs[i].path.string()},
                                     {"value", found.metric_of(found.points[i].error)}}));
  for (const double size : larger_sizes(found)) {
    const eval::ScaleValue value = fit.at(size);
    const double one = found.metric_of(value.low), other = found.metric_of(value.high);
    larger.push_back(json_object({{"size", Json(size)},
                                  {"value", found.metric_of(value.value)},
                                  {"low", std::min(one, other)},
                                  {"high", std::max(one, other)}}));
  }
  return json_object({{"recipe", Json(a.recipe)},
                      {"by", a.by},
                      {"metric", found.metric},
                      {"trainings", trainings},
                      {"law", json_object({{"floor", Json(fit.law().floor)},
                                           {"factor", fit.law().factor},
                                           {"exponent", fit.law().exponent}})},
                      {"spread", fit.spread()},
                      {"larger", larger},
                      {"doubt", fit.doubt()},
                      {"unfinished", found.unfinished},
                      {"small_batches", found.small},
                      {"left_out", trained.left_out()},
                      {"complete", !trained.out_of_time()}});
}

void print_scale(const ScaleArguments& a, const train::ScaleFinding& found, const eval::ScaleFit& fit,
                 const Curve& curve) {
  const std::string name = found.metric;
  fmt::print("{} over the size of {}{}\n\n{}\n", found.higher_is_better ? "1 - " + name : name,
             a.by == "data" ? "the data" : a.by, "; o a training, - the law, . its 95 % interval",
             scale_plot(found, curve, a.by));
  std::set<double> sizes;
  for (const train::ScaleRun& run : found.runs) sizes.insert(run.size);
  for (const double size : sizes) {
    std::vector<std::string> values;
    for (const eval::ScalePoint& point : found.points)
      if (point.size == size) values.push_back(metric_value(found, point.error));
    fmt::print("  {:>6}  {} {}\n", size_text(size), name, fmt::join(values, ", "));
  }
  const eval::ScaleLaw& law = fit.law();
  const double percent = 100 * fit.spread();
  fmt::print("\n  law: {} + {} · size^-{:.2f}, trainings lie ± {} % about it\n", number_text(law.floor),
             number_text(law.factor), law.exponent,
             percent < 10 ? fmt::format("{:.2g}", percent) : fmt::format("{:.0f}", percent));
  const char* const what = a.by == "data" ? "the data" : a.by.c_str();
  const double largest = found.runs.back().size;
  for (const double size : larger_sizes(found)) {
    const eval::ScaleValue value = fit.at(size);
    fmt::print("  {:>2.0f} times {}{}: {} {} ({})\n", size / largest, what,
               largest == 1 ? "" : fmt::format(" of size {}", size_text(largest)), name,
               metric_value(found, value.value), interval_value(found, value));
  }
  if (!fit.doubt().empty()) fmt::print("\nthis says little: {}\n", fit.doubt());
  for (const std::string& line : found.small) fmt::print("  note: {}\n", line);
  for (const std::string& line : found.unfinished) fmt::print("  note: {}\n", line);
  if (!found.unfinished.empty())
    fmt::print(
        "  {} of {} trainings are far from converged: train longer (train.epochs) before you believe the "
        "law\n",
        found.unfinished.size(), found.runs.size());
}

int run_scale(const ScaleArguments& a) {
  const task::Recipe recipe = train::recipe_of(a.recipe, a.overrides);
  const train::ScaleAxis axis{a.by, sizes_of(a.sizes), a.seeds};
  require_named(a.out, "--out");
  const fs::path folder =
      a.out.empty() ? fs::path("runs") / (fs::path(a.recipe).stem().string() + "-scale") : fs::path(a.out);
  const auto runs = train::scale_runs(recipe, axis, folder);
  train::claim_scale_folder(folder, recipe, axis);
  catch_interrupts();
  ScaleTrainings trainings(a, runs);
  if (!trainings.all()) {
    fmt::print(stderr, "stopped, everything is saved; the same command goes on\n");
    return 130;
  }
  if (trainings.left_out().size() == runs.size())
    fail<InputError>("nothing could be trained: {}", trainings.left_out()[0]);
  const train::ScaleFinding found = train::read_scale(runs, a.metric, recipe.train.batch);
  const eval::ScaleFit fit(found.points);
  const Curve curve = curve_of(fit, found.runs.front().size, 10 * found.runs.back().size);
  if (!a.svg.empty()) write_file(a.svg, scale_svg(found, curve, a.by));
  if (a.json) {
    print_json(scale_json(a, found, fit, trainings));
    return 0;
  }
  print_scale(a, found, fit, curve);
  for (const std::string& line : trainings.left_out()) fmt::print("  left out: {}\n", line);
  if (trainings.out_of_time())
    fmt::print("  --minutes {:g} were not enough for all: the same command with more of them goes on\n",
               a.minutes);
  if (!a.svg.empty()) fmt::print("  drawn: {}\n", a.svg);
  return 0;
}

Action declare_scale(Command& command) {
  auto a = std::make_shared<ScaleArguments>();
  command.positional("RECIPE", a->recipe, "a TOML recipe with a test set")
      .positional("KEY=VALUE", a->overrides, "changes of the recipe, as of millrace train", false)
      .option("--by", a->by, "what is varied: data, or a whole number of the model, as model.width")
      .option("--sizes", a->sizes,
              "of what the recipe has; by default 1/16,1/8,1/4,1/2,1 of the data, 1/4,1/2,1,2 of a model")
      .option("--seeds", a->seeds, "trainings of each size, but one of the whole data")
      .option("--metric", a->metric, "of the test; by default the first that the recipe reports")
      .option("--minutes", a->minutes, "begin no training that would end later; 0: train all")
      .option("--out", a->out, "the folder of the trainings; by default runs/<recipe>-scale")
      .option("--svg", a->svg, "draw the curve into this file")
      .flag("--json", a->json, "print one JSON object at the end")
      .footer(
          "Trains on parts of the data (or with smaller and larger models), fits error = a + b * size^-c, "
          "and "
          "says what\n"
          "twice and ten times as much would give, with an interval, or why that cannot be said. Trainings "
          "that "
          "are in\n"
          "the folder are used again, so a stopped one goes on by the same command. A quarter of the whole "
          "training's\n"
          "steps is the least for small parts.\n\n"
          "  millrace scale examples/letters.toml\n"
          "  millrace scale examples/letters.toml --seeds 3 --svg letters.svg\n"
          "  millrace scale examples/shakespeare.toml --by model.width --sizes 1/4,1/2,1\n");
  return [a] { return run_scale(*a); };
}

}  // namespace

MILLRACE_VERB(scale){"scale", "what more data, or a larger model, would give: a learning curve",
                     declare_scale, 106};

}  // namespace millrace::cli
