// The memory of what a step keeps of its parameters (passes/keep_copies.cpp), and whether it still belongs to
// them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/program.h>

#include "passes/pass.h"
#include "plan/plan.h"

namespace millrace {

class KeptCopies {
 public:
  /// `make` gives the copies from the parameters.
  KeptCopies(const Graph& make, const std::string& target);

  /// Whether a step that computes its copies by `make` can use these.
  bool fits(const Graph& make) const { return make == graph_; }
  const Array& copy(int i) const { return make_.output(i); }
  /// How often they were made from parameters instead of by the step.
  int64_t times_made() const { return times_made_; }

  /// Before a run on these parameters (the step's `inputs` numbered in `parameters`, in the order of
  /// `make`'s): makes the copies unless they are what a run left, and no parameter was written since. Until
  /// note() they count as unknown.
  void refresh(std::span<const Array> inputs, std::span<const int> parameters);
  /// After the run, which wrote parameters and copies.
  void note(std::span<const Array> inputs, std::span<const int> parameters);

 private:
  Graph graph_;
  Program make_;
  std::vector<std::optional<Array::Stamp>> seen_;  // of each parameter as the last run left it
  int64_t times_made_ = 0;
};

/// Bytes of the arena if copies (the inputs from `first` on) were made in every run, for as long as they are
/// read, less those of the copies; `at_peak`: whether each of them would be there when the arena is fullest.
int64_t bytes_without_copies(const Plan& plan, int first, std::vector<char>& at_peak);

}  // namespace millrace
