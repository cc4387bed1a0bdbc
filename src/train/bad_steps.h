// Steps whose update is not made: because the loss or the gradients are not finite, or the loss is far above
// what it lately was. What becomes of the training then, train.on_bad_step says (trainer_recovery.cpp).
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::train {

/// The losses of the last sound steps, and what loss would be far above them.
class LossWatch {
 public:
  static constexpr size_t most = 100, least = 20;

  /// The loss from which on a step is bad: the median of the losses and so many robust deviations (1.4826
  /// times their median absolute deviation, 1 % of the median at least). Infinite while fewer than `least`
  /// are known, and for 0 deviations.
  double limit(double deviations) const;
  /// How many of these deviations a loss is above the median.
  double deviations(double loss) const;
  void add(double loss);
  const std::deque<double>& losses() const { return losses_; }
  void set(std::vector<double> losses) { losses_.assign(losses.begin(), losses.end()); }

 private:
  struct Spread {
    double median = 0, deviation = 0;
  };
  Spread spread() const;
  std::deque<double> losses_;
};

/// A bad step, as recovery.jsonl in the run folder has it, a line each.
struct BadStep {
  int64_t step = 0;
  std::string what;       // "skipped", "rolled back"
  std::string why;        // "the loss is NaN: log in layer '3' made NaN values"
  int64_t to = -1;        // the step whose weights the training went back to; -1: it did not
  double lr_factor = 1;   // of the rate, from then on, by all rollbacks together
  std::string time = {};  // UTC
};

/// Appends a line, which is on the disk when this returns. IoError.
void write_bad_step(const std::filesystem::path& path, const BadStep& step);
/// All lines; none when there is no file. A line cut off by a kill is left out; InputError names one that is
/// none.
std::vector<BadStep> read_bad_steps(const std::filesystem::path& path);
/// Removes those behind a step, from which the training goes on.
void forget_bad_steps(const std::filesystem::path& path, int64_t step);
/// "step 120: rolled back to step 100, …"
std::string bad_step_text(const BadStep& step);

}  // namespace millrace::train
