#include "train/estimate.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "base/format.h"
#include "runtime/run_clock.h"

namespace millrace::train {
namespace {

constexpr double kMeasure = 3;         // seconds of steps
constexpr int64_t kLeastSteps = 5;     // however long they take
constexpr double kLongestWarmUp = 10;  // seconds
constexpr int64_t kSample = 2000;      // samples

/// The largest resident size this process has had, in bytes; 0 when the kernel does not say.
double peak_resident() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("VmHWM:")) continue;
    double kilobytes = 0;
    std::istringstream(line.substr(6)) >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

/// Forgets the peak so far, as Linux lets a process do; what measuring the machine took is not the
/// training's.
void reset_peak_resident() { std::ofstream("/proc/self/clear_refs") << "5"; }

Profile measure_steps(Trainer& trainer, const Machine& machine) {
  Program& program = trainer.program();
  std::vector<StepMarks> marks;
  // Steps first use up what the loader has ahead: threads + 2 batches, and one that the step holds.
  const int64_t ahead = machine.threads + 3;
  int64_t done = 0, start = clock_now();
  const auto elapsed = [&] { return static_cast<double>(clock_now() - start) * 1e-9; };
  bool warm = false;
  trainer.rehearse([&](const StepMarks& m) {
    ++done;
    if (!warm) {
      warm = done >= ahead || (done >= 2 && elapsed() > kLongestWarmUp);
      if (!warm) return true;
      program.set_profiling(true);
      start = clock_now();
      return true;
    }
    marks.push_back(m);
    return static_cast<int64_t>(marks.size()) < kLeastSteps || elapsed() < kMeasure;
  });
  Profile profile = make_profile(program.launches(), program.run_times(), marks, machine);
  program.set_profiling(false);
  // Buckets: the profile is of the longest rows, the training has steps of all lengths.
  if (static_cast<size_t>(profile.runs) < marks.size()) {
    double sum = 0;
    for (const StepMarks& m : marks) sum += static_cast<double>(m.end - m.begin) * 1e-9;
    profile.seconds = sum / static_cast<double>(marks.size());
  }
  return profile;
}

Machine machine_like(const Machine& here, const DescribedMachine& d) {
  Machine m = here;
  const double cores = d.cores > 0 ? static_cast<double>(d.cores) / static_cast<double>(here.threads) : 1;
  const double compute = d.gflops > 0 ? d.gflops / here.fp32_gflops : cores;
  if (d.cores > 0) m.threads = static_cast<int>(d.cores);
  for (double* rate : {&m.fp32_gflops, &m.bf16_gflops, &m.matmul_fp32_gflops, &m.matmul_bf16_gflops})
    *rate *= compute;
  for (MemoryLevel& level : m.levels) {
    if (&level == &m.levels.back()) break;
    level.gb_per_s *= cores;  // caches come with cores
    level.bytes = static_cast<int64_t>(static_cast<double>(level.bytes) * cores);
  }
  if (d.bandwidth > 0) m.levels.back().gb_per_s = d.bandwidth;
  if (d.memory > 0) m.levels.back().bytes = static_cast<int64_t>(d.memory);
  return m;
}

/// Seconds of a step's kernels on another machine.
double kernels_on(const Profile& profile, const Machine& other) {
  double sum = 0;
  for (const LaunchProfile& l : profile.launches) {
    const double overhead = std::min(l.seconds, profile.machine.launch_seconds);
    const double before = l.roof.seconds(), after = roof_of(l.info, other).seconds();
    sum += overhead + (l.seconds - overhead) * (before > 0 ? after / before : 1);
  }
  return sum;
}

/// What limits the step: the largest part of its time, in words. `profile` is of the machine measured.
std::string what_binds(const Profile& profile, const Machine& machine, double step, double data,
                       const Estimate& e) {
  if (!e.fits())
    return fmt::format("memory: {:.1f} GB are needed, there are {:.1f} GB", e.memory_bytes / 1e9,
                       e.machine_bytes / 1e9);
  if (data > 0.3 * step) return "data: reading and augmenting take longer than the step leaves them";
  double arithmetic = 0, memory = 0, small = 0;
  for (const LaunchProfile& l : profile.launches) {
    const Roof roof = roof_of(l.info, machine);
    if (l.seconds < 5 * machine.launch_seconds)
      small += l.seconds;
    else if (roof.memory_bound())
      memory += l.seconds;
    else
      arithmetic += l.seconds;
  }
  small += profile.host;
  const double all = std::max(arithmetic + memory + small, 1e-12);
  const auto words = [&](const char* what, double part) {
    return fmt::format("{}, in {:.0f} % of the step's time", what, 100 * part / all);
  };
  if (arithmetic >= memory && arithmetic >= small) return words("arithmetic", arithmetic);
  if (memory >= small) return words("memory bandwidth", memory);
  return words("overheads of launches and host", small);
}

/// `views`: of each sample in the last test.
void add_up(Estimate& e, const Preparation& p, double batch, int views) {
  e.samples_per_second = batch / e.step;
  e.epoch = static_cast<double>(p.steps_per_epoch) * e.step + e.test;
  e.total = e.read + e.compile + static_cast<double>(p.steps) * e.step +
            (std::ceil(p.epochs - 1e-9) - 1 + views) * e.test;
}

double ratio(int64_t whole, int64_t part) {
  return part > 0 ? static_cast<double>(whole) / static_cast<double>(part) : 0;
}

}  // namespace

Estimates estimate(const task::Recipe& recipe, const DescribedMachine& described, const Observer& observer) {
  Estimates all;
  all.machine = this_machine();
  reset_peak_resident();
  Trainer trainer(recipe, observer, kSample);
  const Profile profile = measure_steps(trainer, all.machine);
  const double test_sample = trainer.rehearse_test();
  const Preparation& p = all.prepared = trainer.preparation();
  const auto batch = static_cast<double>(trainer.recipe().train.batch);

  Estimate& here = all.here;
  const double tests = ratio(p.tests, p.opened_tests);
  here.read = p.read_tests * tests + p.fit + (p.cached ? p.read * ratio(p.samples, p.opened) : p.read);
  here.compile = p.compile;
  here.step = profile.seconds;
  here.test = test_sample * tests;
  if (const double each = trainer.data_times().cpu_per_sample(); each > 0)
    here.load_per_second = all.machine.threads / each;
  const double left_out =
      p.cached ? p.sample_bytes * static_cast<double>(p.samples - p.opened + p.tests - p.opened_tests) : 0;
  here.memory_bytes = peak_resident() + left_out;
  here.machine_bytes = static_cast<double>(all.machine.ram().bytes);
  const int views = trainer.views();
  add_up(here, p, batch, views);
  here.binds = what_binds(profile, all.machine, here.step, profile.data, here);

  all.described = machine_like(all.machine, described);
  Estimate& there = all.there = here;
  if (!described.given()) return all;
  const double cores = static_cast<double>(all.machine.threads) / static_cast<double>(all.described.threads);
  const double kernels = kernels_on(profile, all.described);
  const double measured = std::max(profile.phases[0] + profile.phases[1] + profile.phases[2], 1e-12);
  // The loader's threads and the step share the cores: waiting here is work that more cores do sooner.
  const double data = profile.data * cores;
  there.step = kernels + profile.host + data;
  there.test = here.test * kernels / measured;
  there.read = here.read * cores;
  there.load_per_second = here.load_per_second / cores;
  there.machine_bytes = static_cast<double>(all.described.ram().bytes);
  add_up(there, p, batch, views);
  there.binds = what_binds(profile, all.described, there.step, data, there);
  return all;
}

}  // namespace millrace::train
