#include "optim/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/format.h"
#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {
namespace {

constexpr double sufficient = 1e-4, curvature = 0.9;  // of Wolfe's conditions
/// What sums of f32 losses leave in doubt.
constexpr double noise = 1e-6;
constexpr int64_t most_tries = 12;

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// The minimum of the cubic through two places, well between them.
double cubic_minimum(double a, double loss_a, double slope_a, double b, double loss_b, double slope_b) {
  const double d1 = slope_a + slope_b - 3 * (loss_a - loss_b) / (a - b);
  const double square = d1 * d1 - slope_a * slope_b;
  const double d2 = std::copysign(std::sqrt(std::max(0.0, square)), b - a);
  double found = b - (b - a) * (slope_b + d2 - d1) / (slope_b - slope_a + 2 * d2);
  const double low = std::min(a, b), width = std::abs(b - a);
  if (!(square >= 0) || !std::isfinite(found)) found = low + width / 2;
  return std::clamp(found, low + 0.1 * width, low + 0.9 * width);
}

Array array_of(std::span<const double> values) {
  return Array::of(f64, {static_cast<int64_t>(values.size())}, values);
}

}  // namespace

Lbfgs::Lbfgs(Options options, std::vector<float> start)
    : options_(options), at_(std::move(start)), point_(at_) {}

double Lbfgs::largest() const {
  double most = 0;
  for (const double g : gradient_) most = std::max(most, std::abs(g));
  return most;
}

std::vector<double> Lbfgs::direction() const {
  std::vector<double> d(gradient_.size());
  std::transform(gradient_.begin(), gradient_.end(), d.begin(), [](double g) { return -g; });
  if (pairs_.empty()) return d;
  std::vector<double> shares(pairs_.size());
  const auto add = [&](const std::vector<double>& vector, double times) {
    for (size_t i = 0; i < d.size(); ++i) d[i] += times * vector[i];
  };
  for (size_t k = pairs_.size(); k-- > 0;) {
    shares[k] = dot(pairs_[k].step, d) / pairs_[k].product;
    add(pairs_[k].change, -shares[k]);
  }
  const Pair& newest = pairs_.back();
  const double scale = newest.product / dot(newest.change, newest.change);
  for (double& x : d) x *= scale;
  for (size_t k = 0; k < pairs_.size(); ++k)
    add(pairs_[k].step, shares[k] - dot(pairs_[k].change, d) / pairs_[k].product);
  return d;
}

void Lbfgs::try_step(double step) {
  step_ = step;
  for (size_t i = 0; i < point_.size(); ++i)
    point_[i] = static_cast<float>(static_cast<double>(at_[i]) + step * direction_[i]);
  if (point_ == at_) state_ = State::stalled;
}

void Lbfgs::begin_line() {
  direction_ = direction();
  double slope = dot(gradient_, direction_);
  if (!(slope < 0)) {  // digits have been lost: begin anew
    pairs_.clear();
    direction_ = direction();
    slope = dot(gradient_, direction_);
  }
  start_ = low_ = {0, loss_, slope};
  high_.reset();
  tries_ = 0;
  // Without pairs the gradient's size says nothing of how far to go.
  double size = 0;
  for (const double g : gradient_) size += std::abs(g);
  try_step(pairs_.empty() ? std::min(1.0, 1 / size) : 1);
}

bool Lbfgs::accepts(const Place& place) const {
  if (!std::isfinite(place.loss) || !std::isfinite(place.slope)) return false;
  if (place.loss <= start_.loss + sufficient * place.step * start_.slope &&
      std::abs(place.slope) <= curvature * -start_.slope)
    return true;
  // The difference of the losses may be nothing but rounding: then slopes tell as much.
  return place.loss <= start_.loss + noise * std::abs(start_.loss) &&
         place.slope >= curvature * start_.slope && place.slope <= (2 * sufficient - 1) * start_.slope;
}

std::optional<double> Lbfgs::next_step(const Place& place) {
  constexpr double further = 4;
  if (++tries_ > most_tries) return std::nullopt;
  const double doubt = noise * std::abs(start_.loss);
  const bool sound = std::isfinite(place.loss) && std::isfinite(place.slope);
  if (!sound || place.loss > start_.loss + sufficient * place.step * start_.slope + doubt ||
      (low_.step > 0 && place.loss > low_.loss + doubt)) {
    high_ = place;
  } else if (!high_ && place.slope < 0) {
    low_ = place;
    return further * place.step;
  } else {
    if (place.slope * ((high_ ? high_->step : INFINITY) - low_.step) >= 0) high_ = low_;
    low_ = place;
  }
  if (!std::isfinite(high_->loss) || !std::isfinite(high_->slope)) return (low_.step + high_->step) / 2;
  return cubic_minimum(low_.step, low_.loss, low_.slope, high_->step, high_->loss, high_->slope);
}

void Lbfgs::move(const Place& place, std::span<const double> gradient) {
  Pair pair;
  for (size_t i = 0; i < at_.size(); ++i) {
    pair.step.push_back(static_cast<double>(point_[i]) - static_cast<double>(at_[i]));
    pair.change.push_back(gradient[i] - gradient_[i]);
  }
  pair.product = dot(pair.step, pair.change);
  constexpr double least = 1e-10;  // of curvature, where a pair says something
  if (pair.product > least * dot(pair.change, pair.change)) pairs_.push_back(std::move(pair));
  if (std::ssize(pairs_) > options_.history) pairs_.pop_front();
  at_ = point_;
  loss_ = place.loss;
  gradient_.assign(gradient.begin(), gradient.end());
}

Lbfgs::State Lbfgs::measured(double loss, std::span<const double> gradient) {
  if (gradient.size() != at_.size())
    fail<InternalError>("a gradient of {} numbers for {} parameters", gradient.size(), at_.size());
  if (state_ != State::going) return state_;
  if (!begun_) {
    begun_ = true;
    loss_ = loss;
    gradient_.assign(gradient.begin(), gradient.end());
  } else {
    const Place place{step_, loss, dot(gradient, direction_)};
    if (!accepts(place)) {
      if (const auto step = next_step(place)) {
        try_step(*step);
      } else if (!pairs_.empty()) {
        pairs_.clear();  // once more, straight down
        begin_line();
      } else {
        state_ = State::stalled;
      }
      return state_;
    }
    move(place, gradient);
  }
  if (largest() <= options_.tolerance)
    state_ = State::converged;
  else
    begin_line();
  return state_;
}

std::vector<std::pair<std::string, Array>> Lbfgs::arrays() const {
  const std::vector<double> at(at_.begin(), at_.end()), point(point_.begin(), point_.end());
  const Place high = high_.value_or(Place());
  const std::vector<double> line = {static_cast<double>(state_),
                                    begun_ ? 1.0 : 0.0,
                                    loss_,
                                    start_.loss,
                                    start_.slope,
                                    low_.step,
                                    low_.loss,
                                    low_.slope,
                                    high_ ? 1.0 : 0.0,
                                    high.step,
                                    high.loss,
                                    high.slope,
                                    step_,
                                    static_cast<double>(tries_)};
  std::vector<std::pair<std::string, Array>> list = {{"at", array_of(at)},
                                                     {"point", array_of(point)},
                                                     {"gradient", array_of(gradient_)},
                                                     {"direction", array_of(direction_)},
                                                     {"line", array_of(line)}};
  for (size_t k = 0; k < pairs_.size(); ++k) {
    list.emplace_back(fmt::format("step.{}", k), array_of(pairs_[k].step));
    list.emplace_back(fmt::format("change.{}", k), array_of(pairs_[k].change));
  }
  return list;
}

void Lbfgs::restore(const std::vector<std::pair<std::string, Array>>& arrays) {
  const auto find = [&](const std::string& name) -> std::optional<std::vector<double>> {
    for (const auto& [own, array] : arrays)
      if (own == name) return array.to_doubles();
    return std::nullopt;
  };
  const auto need = [&](const std::string& name, size_t size) {
    auto found = find(name);
    if (!found || (found->size() != size && !(found->empty() && name != "line")))
      fail<InputError>("the checkpoint's state of lbfgs is damaged: its '{}' does not fit the model", name);
    return *std::move(found);
  };
  constexpr size_t line_size = 14;
  const size_t size = at_.size();
  const std::vector<double> at = need("at", size), point = need("point", size),
                            line = need("line", line_size);
  gradient_ = need("gradient", size);
  direction_ = need("direction", size);
  at_.assign(at.begin(), at.end());
  point_.assign(point.begin(), point.end());
  state_ = line[0] == 0 ? State::going : line[0] == 1 ? State::converged : State::stalled;
  begun_ = line[1] != 0;
  loss_ = line[2];
  start_ = {0, line[3], line[4]};
  low_ = {line[5], line[6], line[7]};
  high_ = line[8] != 0 ? std::optional<Place>({line[9], line[10], line[11]}) : std::nullopt;
  step_ = line[12];
  tries_ = static_cast<int64_t>(line[13]);
  pairs_.clear();
  for (size_t k = 0; find(fmt::format("step.{}", k)); ++k) {
    Pair pair{need(fmt::format("step.{}", k), size), need(fmt::format("change.{}", k), size), 0};
    pair.product = dot(pair.step, pair.change);
    pairs_.push_back(std::move(pair));
  }
}

MILLRACE_OPTIMIZER(lbfgs){
    .name = "lbfgs",
    .doc =
        "L-BFGS on all samples: each epoch is one measurement of the loss and its gradient, and the training "
        "ends when that is as good as 0; for convex models (linear), with no rate and no schedule",
    .settings =
        {{"weight_decay",
          "L2 penalty: half of it times the sum of squared weights is added to the mean loss; scikit-learn's "
          "C is 1 / (samples · weight_decay), of two classes 2 / (samples · weight_decay), Ridge's alpha "
          "samples · weight_decay / 2",
          0.0, 0, 1e3},
         {"decay_all", "true: biases are in the penalty, too", false},
         {"history", "steps that the curvature is taken from", int64_t{10}, 1, 1000},
         {"tolerance", "it ends when no element of the gradient is larger", 1e-5, 0, 1}},
    .whole = true,
    // Changes nothing: sums the gradients of a pass, in f64, for who moves the parameters then.
    .make = [](const Settings& /*settings*/, Options common) -> std::shared_ptr<const Optimizer> {
      return optimizer_by(
          common, {.state_of = [](const std::string& /*name*/, const Type& type) -> std::vector<StateArray> {
                     return {{"gradient", {f64, type.shape}}};
                   },
                   .update =
                       [](Update& u) {
                         ops::Build b(u.graph);
                         u.state[0] = b.add(u.state[0], b.cast(u.gradient, f64));
                         return u.parameter;
                       }});
    },
};

}  // namespace millrace::optim
