// A profile in the forms that people and programs read.
#pragma once

#include <functional>
#include <string>

#include "base/counters.h"
#include "runtime/profile.h"

namespace millrace::cli {

/// What was profiled.
struct ProfileTitle {
  std::string name;    // "examples/letters.toml", or a model's name
  std::string detail;  // "training, batch 128, fp32"
  int64_t items = 1;   // a step
  std::string data;    // was it the limit? one line, or nothing
};

/// Counts over steps that are being measured.
class StepCounters {
 public:
  StepCounters() : before_(counters_.read()) {}
  /// What has been counted since, divided by the number of steps.
  std::vector<std::pair<std::string, double>> per_step(int steps) const;

 private:
  Counters counters_;
  std::vector<double> before_;
};

/// Runs a step: a warm-up, then at least `least` times and for at least `seconds`.
Profile profile_steps(Program& program, const std::function<void()>& run, int least, double seconds);

/// Tables: the split of a step, kinds of work, layers to `depth` (0: whole names), the `kernels` slowest
/// launches, what would help most.
std::string profile_text(const Profile& profile, const ProfileTitle& title, int depth, int kernels);
/// One table: the slowest launches.
void print_kernels(const Profile& profile, int kernels);

/// The same as one JSON object, with every launch.
std::string profile_json(const Profile& profile, const ProfileTitle& title, int depth);
/// The median step as Chrome trace events, which Perfetto and chrome://tracing open.
std::string profile_trace(const Profile& profile, const ProfileTitle& title);
/// One HTML page without outside parts: roofline, flame chart of the median step, tables.
std::string profile_page(const Profile& profile, const ProfileTitle& title);

}  // namespace millrace::cli
