// L-BFGS: a loss and its gradient over all samples, made small by steps whose lengths are searched for.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/array.h>
#include <millrace/optim.h>

namespace millrace::optim {

/// Nocedal's two-loop recursion over the newest pairs, with a line search for the strong Wolfe conditions
/// (Nocedal and Wright, 2006, algorithms 3.5 and 3.6). Who has the function calls: it is measured at point(),
/// and measured() says where next. Near the end, where losses differ by less than what f32 leaves of them,
/// slopes alone decide, as Hager and Zhang (2005) have it. Arithmetic is in f64; points are f32, as
/// parameters are.
class Lbfgs {
 public:
  struct Options {
    int64_t history = 10;     // pairs
    double tolerance = 1e-5;  // of the largest element of the gradient
  };
  enum class State {
    going,
    converged,  // no element of the gradient at best() is larger than the tolerance
    stalled     // no step makes the loss smaller, as far as its digits tell
  };

  Lbfgs(Options options, std::vector<float> start);

  /// Where the function is to be measured.
  const std::vector<float>& point() const { return point_; }
  /// The best point that has been measured, and its loss.
  const std::vector<float>& best() const { return at_; }
  double best_loss() const { return loss_; }
  /// The largest element of its gradient.
  double largest() const;
  /// The function at point(), which moves on. A loss that is not finite is a step too far.
  State measured(double loss, std::span<const double> gradient);
  State state() const { return state_; }
  bool begun() const { return begun_; }  // has anything been measured

  /// All that it goes on by: of equal arrays, equal steps.
  std::vector<std::pair<std::string, Array>> arrays() const;
  /// InputError for what arrays() did not give for as many numbers.
  void restore(const std::vector<std::pair<std::string, Array>>& arrays);

 private:
  /// A place on the line: how far, the loss and the slope there.
  struct Place {
    double step = 0, loss = 0, slope = 0;
  };
  struct Pair {
    std::vector<double> step, change;
    double product = 0;
  };
  void begin_line();
  void try_step(double step);
  /// Does the place end the search?
  bool accepts(const Place& place) const;
  /// The next step to try; nothing where the search has come to nothing.
  std::optional<double> next_step(const Place& place);
  void move(const Place& place, std::span<const double> gradient);
  std::vector<double> direction() const;

  Options options_;
  State state_ = State::going;
  bool begun_ = false;
  std::vector<float> at_, point_;  // where the line begins, and on it
  std::vector<double> gradient_, direction_;
  double loss_ = 0;
  std::deque<Pair> pairs_;  // newest last
  Place start_, low_;
  std::optional<Place> high_;
  double step_ = 0;
  int64_t tries_ = 0;
};

}  // namespace millrace::optim
