#include "runtime/compare.h"

#include <algorithm>

#include <millrace/program.h>

#include "plan/fastest.h"
#include "runtime/run_clock.h"

namespace millrace {
namespace {

constexpr int kRounds = 10;
// Worth a choice: so much of the other's time at most, so many nanoseconds less, and faster in so many
// rounds.
constexpr double kWorthwhile = 0.97;
constexpr int64_t kNoticed = 1000;
constexpr int kWon = 8;
// When the first is so much slower after some rounds, or cannot win often enough, the others are spared.
constexpr int kFewRounds = 3;
constexpr double kHopeless = 1.2;

/// A program, and its fastest run so far.
class Contender {
 public:
  Contender(const Graph& graph, const std::string& device, const std::map<std::string, std::string>& choices)
      : program_(Program::compile(graph, {.target = device, .choices = choices})) {
    for (int i = 0; i < program_.input_count(); ++i)
      program_.bind_input(i, timing_numbers(program_.input(i).type()));
    for (const LaunchInfo& launch : program_.launches()) is_copy_.push_back(launch.operation == "copy");
  }

  int64_t copies() const { return std::count(is_copy_.begin(), is_copy_.end(), true); }
  int64_t best() const { return best_; }

  int64_t run(bool with_copies) {
    if (!with_copies) program_.set_profiling(true);
    const int64_t begin = clock_now();
    program_.run();
    int64_t took = clock_now() - begin;
    if (!with_copies) {
      const std::vector<int64_t> marks = program_.run_times().back();
      took = 0;
      for (size_t l = 0; l < is_copy_.size(); ++l)
        if (!is_copy_[l]) took += marks[l + 1] - marks[l];
    }
    best_ = std::min(best_, took);
    return took;
  }

 private:
  Program program_;
  std::vector<bool> is_copy_;  // of each launch
  int64_t best_ = INT64_MAX;
};

}  // namespace

bool runs_faster(const Graph& graph, const Graph& other, const std::string& device,
                 const std::map<std::string, std::string>& choices) {
  Contender one(graph, device, choices), two(other, device, choices);
  const bool with_copies = one.copies() == 0 || one.copies() != two.copies();
  const auto slower = [&](double share) {
    return static_cast<double>(one.best()) >= share * static_cast<double>(two.best());
  };
  int won = 0;
  for (int round = 1; round <= kRounds; ++round) {  // in turns, so that a disturbance meets both
    const int64_t mine = one.run(with_copies);
    won += mine < two.run(with_copies) ? 1 : 0;
    if (round - won > kRounds - kWon || (round >= kFewRounds && slower(kHopeless))) return false;
  }
  return won >= kWon && !slower(kWorthwhile) && two.best() - one.best() >= kNoticed;
}

}  // namespace millrace
