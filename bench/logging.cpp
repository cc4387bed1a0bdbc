// What a training pays for its logs, 10,000 steps a second over three seconds: microseconds of CPU a step, of
// the training's thread and of the one that writes. `logging FOLDER EVERY [LOG]`: each EVERY steps (0: never)
// the 107 values of train.log_every, too; LOG is one of train.log.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "track/exhibit_files.h"
#include "track/log_kind.h"
#include "track/metrics_log.h"
#include "track/recorder.h"
#include "track/tensorboard.h"

using namespace millrace;

namespace {

constexpr int64_t steps = 30'000, burst = 10;  // steps between two looks at the clocks
constexpr auto between_bursts = std::chrono::milliseconds(1);

double cpu_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::shared_ptr<const track::Names> names_of(const std::vector<std::string>& keys) {
  track::Names names{keys, {}};
  for (const std::string& key : keys) names.curves.push_back("train/" + key);
  return std::make_shared<const track::Names>(std::move(names));
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return std::fprintf(stderr, "logging FOLDER EVERY [LOG]\n"), 1;
  const std::filesystem::path folder = arguments[1];
  const int64_t every = std::atoll(arguments[2]);
  std::vector<std::unique_ptr<track::Sink>> sinks;
  sinks.push_back(std::make_unique<track::MetricsLog>(folder / "metrics.jsonl"));
  sinks.push_back(std::make_unique<track::ExhibitFiles>(folder));
  sinks.push_back(std::make_unique<track::EventWriter>(folder));
  if (count > 3) sinks.push_back(track::open_log(arguments[3], {folder, folder, "", {}, -1}));
  track::Recorder log(std::move(sinks));

  const auto of_step = names_of({"epoch", "loss", "accuracy", "lr"});
  std::vector<std::string> keys;
  for (int i = 0; i < 107; ++i) keys.push_back("norm/" + std::to_string(i));
  const auto of_details = names_of(keys);
  double thread = 0;
  const double process = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID), own = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  auto next = std::chrono::steady_clock::now();
  for (int64_t step = 0; step < steps;) {
    const double begin = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    for (const int64_t end = step + burst; step < end; ++step) {
      const auto x = static_cast<double>(step);
      log.add({of_step, step, 1.7e9 + x / 1e4, {x / 500, 1 / (1 + x), 0.5, 1e-3}});
      if (every > 0 && step % every == 0)
        log.add({of_details, step, 1.7e9 + x / 1e4, std::vector<double>(keys.size(), 1 / (3 + x))});
    }
    thread += cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
    std::this_thread::sleep_until(next += between_bursts);
  }
  log.finish("finished");
  const double spent = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - own;
  const double all = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - process;
  std::printf("%.2f %.2f\n", thread / steps * 1e6, (all - spent) / steps * 1e6);
}
