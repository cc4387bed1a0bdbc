// How an error falls with the size of the data, or of the model: a saturating power law.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace millrace::eval {

/// One training: of what size, and the error it ended with. Both above 0.
struct ScalePoint {
  double size = 0, error = 0;
};

/// error = floor + factor · size^-exponent, none of them below 0.
struct ScaleLaw {
  double floor = 0, factor = 0, exponent = 0;
  double at(double size) const;
};

/// What the law says of a size, with its 95 % interval.
struct ScaleValue {
  double value = 0, low = 0, high = 0;
};

/// The law that fits trainings best, and those that they do not rule out.
class ScaleFit {
 public:
  /// Least squares of relative errors, trainings that lie far from the others counted less (P. Huber, 1964).
  /// InputError for sizes or errors that are not above 0, and for none.
  explicit ScaleFit(std::span<const ScalePoint> points);

  const ScaleLaw& law() const { return law_; }
  /// The interval is that of all laws that are not significantly worse than the best (profile likelihood, by
  /// Student's t with as many degrees of freedom as there are trainings beside the law's three numbers). It
  /// is one of the law: single trainings lie around it. Without bounds (0 to infinity) where there are fewer
  /// than four trainings.
  ScaleValue at(double size) const;
  /// Standard deviation of a training about the law, as a share of the error.
  double spread() const { return spread_; }
  /// Why the fit says nothing; empty where it does.
  const std::string& doubt() const { return doubt_; }

 private:
  /// The law of one floor and exponent: its best factor, with what it leaves, and how that grows beside it.
  struct Candidate {
    double floor, exponent, factor, left, growth;
  };
  Candidate candidate(double floor, double exponent) const;
  void fit();
  void judge();

  std::vector<ScalePoint> points_;
  std::vector<double> weights_;
  double unit_ = 1, least_ = 0;  // the largest size; the smallest mean error of one size
  std::vector<Candidate> candidates_;
  ScaleLaw law_;
  double left_ = 0, spread_ = 0;
  std::string doubt_;
};

}  // namespace millrace::eval
