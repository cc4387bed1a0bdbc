// Metrics of classifiers, gathered over batches of logits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace::eval {

/// What one sample contributes: class probabilities (softmax of its logits, in double), and its true class.
struct Judged {
  std::span<const double> probabilities;
  /// log of the true class's probability, exact where the probability itself underflows.
  double log_probability = 0;
  int64_t label = 0;
  int64_t predicted = 0;  // the first of the greatest
  /// Of text that the target stands for; 0 where it stands for none.
  double bytes = 0;
};

class Metric {
 public:
  virtual ~Metric() = default;
  virtual void add(const Judged& judged) = 0;
  /// Over all that was added; NaN when nothing was.
  virtual double value() const = 0;
};

/// One kind of metric; each is a file here and a line in metric.cpp.
struct MetricKind {
  std::string name;
  std::string doc;
  bool share = false;  // shown in percent
  std::unique_ptr<Metric> (*make)();
};
extern const MetricKind accuracy_kind, log_loss_kind, top_5_kind, ece_kind, perplexity_kind,
    bits_per_byte_kind;

std::span<const MetricKind* const> metric_kinds();
/// InputError names the nearest for an unknown name.
const MetricKind& metric_kind(const std::string& name);

/// Several metrics at once.
class Metrics {
 public:
  /// `bytes`: Judged::bytes of every target.
  explicit Metrics(const std::vector<std::string>& names, double bytes = 0);
  /// Rows of logits against class numbers.
  void add(std::span<const float> logits, std::span<const int64_t> labels);
  int64_t count() const { return count_; }
  std::vector<std::pair<std::string, double>> values() const;

 private:
  std::vector<std::pair<std::string, std::unique_ptr<Metric>>> metrics_;
  std::vector<double> probabilities_;
  double bytes_ = 0;
  int64_t count_ = 0;
};

/// Wilson's 95 % interval of a share of n (E. B. Wilson, 1927).
std::pair<double, double> wilson_interval(double share, int64_t n);

/// softmax of one row.
void softmax(std::span<const float> logits, std::vector<double>& probabilities);

}  // namespace millrace::eval
