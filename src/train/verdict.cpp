#include "train/verdict.h"

#include <cmath>

#include "base/format.h"
#include "base/size_text.h"

namespace millrace::train {
namespace {

/// "102 µs", "3.1 ms"
std::string short_time(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.3g} µs", seconds * 1e6) : fmt::format("{:.3g} ms", seconds * 1e3);
}

/// `faster`: the most that the model could still take, as a multiple of the rate now.
std::string remedy(const DataMeans& means, double faster) {
  if (means.cache_mb > 0) return fmt::format("data.cache_mb = {} keeps them in memory", means.cache_mb);
  const double gain = std::min(1 / std::max(means.cheaper_cost, 1e-3), faster) - 1;
  if (!means.cheaper.empty() && gain >= 0.01)
    return fmt::format("{} would give about +{:.0f} %", means.cheaper, 100 * gain);
  return means.augments ? "fewer augmentations or more CPUs would help" : "more CPUs would help";
}

}  // namespace

DataTimes operator-(const DataTimes& now, const DataTimes& before) {
  return {now.samples - before.samples, now.seconds - before.seconds, now.waiting - before.waiting,
          now.loaded - before.loaded,   now.working - before.working, now.queued - before.queued,
          now.loading - before.loading};
}

std::string data_verdict(const DataTimes& times, const DataMeans& means) {
  const double wait = times.wait_share();
  if (times.samples == 0 || times.seconds <= 0 || (means.cached && wait <= 0.05)) return "";
  const auto samples = static_cast<double>(times.samples);
  const double each = times.cpu_per_sample(), rate = samples / times.seconds;
  // By the samples trained on, not by those got ready: batches ahead count when they are used.
  const double share = each * rate / means.cpus;
  const std::string loader = fmt::format("loader {} of CPU each, {:.0f} % of all CPU time", short_time(each),
                                         100 * std::min(share, 1.0));
  if (wait <= 0.05)
    return fmt::format("data: the model waited {:.1f} % of the time for {} ({})", 100 * wait, means.unit,
                       loader);
  const double model_rate = samples / std::max(times.seconds - times.waiting, 1e-3 * times.seconds);
  const std::string model = fmt::format("the model could take {}", thousands(std::llrint(model_rate)));
  const std::string told_rate = thousands(std::llrint(rate));
  const double blocked = times.loading - times.working - times.queued;
  if (blocked > times.loading / 2)
    return fmt::format(
        "data: bound by reading at {} {}/s: the model waited {:.0f} % of the time, the loader's threads "
        "{:.0f} % of theirs for bytes ({}); {}; a faster source or millrace pack would help",
        told_rate, means.unit, 100 * wait, 100 * blocked / times.loading, loader, model);
  const double limit = means.cpus / std::max(each, 1e-12);
  if (times.queued > times.working && share < wait / 2)
    return fmt::format(
        "data: short of CPUs at {} {}/s: the model waited {:.0f} % of the time, the loader's threads stood "
        "in line for a CPU {:.0f} % of theirs ({}); {}; do other programs run here?",
        told_rate, means.unit, 100 * wait, 100 * times.queued / times.loading, loader, model);
  // Samples that are ready in memory: what is left is putting batches together.
  if (means.cached && share < wait / 2)
    return fmt::format("data: the model waited {:.0f} % of the time for {} ({})", 100 * wait, means.unit,
                       loader);
  return fmt::format(
      "data: decode-bound at {} {}/s: {:.0f} % of what {} CPU{} can get ready ({}); the model waited "
      "{:.0f} % of the time; {}; {}",
      told_rate, means.unit, 100 * std::min(rate / limit, 1.0), means.cpus, means.cpus == 1 ? "" : "s",
      thousands(std::llrint(limit)), 100 * wait, model, remedy(means, model_rate / rate));
}

}  // namespace millrace::train
