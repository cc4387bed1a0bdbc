#include "cli/predict_out.h"

#include <chrono>
#include <fmt/core.h>

#include "base/format.h"
#include "base/seconds_since.h"
#include "base/size_text.h"
#include "base/utf8.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "task/prediction_writer.h"
#include "train/load_model.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// "12 %  1,234 samples/s  4:05 left  120 of 980"
std::string rate_text(int64_t done, int64_t total, int64_t before, double seconds, const std::string& unit) {
  const double rate = seconds > 0 ? static_cast<double>(done - before) / seconds : 0;
  std::string text = fmt::format("{} %", total > 0 ? 100 * done / total : 100);
  if (rate > 0)
    text += fmt::format("  {} {}/s  {} left", thousands(static_cast<int64_t>(rate)), unit,
                        duration_text(static_cast<double>(total - done) / rate));
  return text + fmt::format("  {} of {}", thousands(done), thousands(total));
}

}  // namespace

int show_prediction(const std::string& out, const std::string& unit,
                    const std::function<task::PredictFileResult(const task::PredictWatch&)>& predict) {
  catch_interrupts();
  Progress progress(stderr);
  const auto begin = Clock::now();
  int64_t before = -1;
  task::PredictWatch watch;
  watch.stop = interrupted;
  watch.note = [&](const std::string& line) { progress.print(line); };
  watch.progress = [&](int64_t done, int64_t total) {
    if (before < 0) before = done;
    progress.update(rate_text(done, total, before, seconds_since(begin), unit), done == total);
  };
  const task::PredictFileResult result = predict(watch);
  progress.finish();
  for (const std::string& line : result.first_bad) fmt::print(stderr, "error: {}\n", printable(line));
  if (!result.whole) {
    fmt::print(stderr, "stopped: {} samples are in {}.partial; the same command goes on from there\n",
               result.done < result.samples
                   ? fmt::format("{} of {}", thousands(result.done), thousands(result.samples))
                   : thousands(result.done),
               out);
    return 1;
  }
  if (result.bad > 0)
    fmt::print(stderr, "warning: {} of {} could not be predicted: {} lists them\n", thousands(result.bad),
               thousands(result.samples), result.bad_file);
  fmt::print("{}: {} samples{} in {:.1f} s\n", out, thousands(result.samples - result.bad),
             result.resumed > 0 ? fmt::format(", {} of them from before", thousands(result.resumed)) : "",
             seconds_since(begin));
  return result.bad > 0 ? 1 : 0;
}

int predict_into_file(const std::string& run, const std::string& checkpoint,
                      const std::vector<std::string>& samples, task::PredictFileOptions o) {
  const bool array = task::is_array_file(o.out);
  if (o.half && !array) fail<InputError>("--f16 is for .npy; {} holds numbers as they are", o.out);
  o.tell.rows = array;
  std::vector<std::string> warnings;
  int64_t step = 0;
  task::Task task = train::load_model(run, warnings, {}, checkpoint, &step);
  for (const std::string& line : warnings) fmt::print(stderr, "{}\n", line);
  o.identity = fmt::format("{} step {}", run, step);
  return show_prediction(o.out, "samples", [&](const task::PredictWatch& watch) {
    o.watch = watch;
    return task::predict_file(task, samples, o);
  });
}

}  // namespace millrace::cli
