#include <chrono>
#include <fmt/core.h>

#include "base/format.h"
#include "base/seconds_since.h"
#include "base/size_text.h"
#include "base/utf8.h"
#include "cli/interrupt.h"
#include "cli/predict.h"
#include "cli/progress.h"

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

}  // namespace millrace::cli
