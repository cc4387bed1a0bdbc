// Metrics: what an evaluation says of a model's outputs.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/error.h>
#include <millrace/tensor.h>

namespace millrace::eval {

/// What metrics see of a batch of one output. Only rows that have a target: others are left out.
struct Judged {
  /// [rows, width]: logits of the classes, labels or tokens; or predicted numbers, in the target's own unit.
  std::span<const float> outputs = {};
  int64_t rows = 0, width = 0;
  /// [rows], 0 … width − 1: the class or token of each row. Empty for other outputs.
  std::span<const int64_t> labels = {};
  /// [rows, width]: targets of numbers, in their own unit; of several labels, 1 where one holds and 0 where
  /// not. Else empty.
  std::span<const double> values = {};
  /// Of text that each row's target stands for; 0 where that says nothing.
  double bytes = 0;
  /// [rows, width]: predicted numbers instead of `outputs`, which f32 may round more than they are wrong.
  std::span<const double> predicted = {};
  /// Logits that decisions are made at: of labels [width], a label is told to hold where its logit is
  /// greater; of two classes [1], the second is told where its logit exceeds the first's by more. Empty: 0.
  std::span<const double> thresholds = {};
  /// [rows]: of outputs that rank, the query of each row. Rows of a query stand together, in one batch.
  std::span<const int64_t> queries = {};
  /// [rows]: of generated texts (then `width` is 0) what was generated, and what it should have been.
  std::span<const std::string> generated = {}, references = {};

  double number(size_t i) const { return predicted.empty() ? static_cast<double>(outputs[i]) : predicted[i]; }
  /// Some rows, as a batch.
  Judged part(int64_t first, int64_t count) const;
  /// The class that a row is told to be of: the first of the most probable ones, unless a threshold decides.
  int64_t told(int64_t row) const;
  /// Is the label of `outputs[i]` told to hold?
  bool told_to_hold(size_t i) const {
    const double threshold = thresholds.empty() ? 0 : thresholds[i % static_cast<size_t>(width)];
    return static_cast<double>(outputs[i]) > threshold;
  }
  std::span<const float> logits(int64_t row) const {
    return outputs.subspan(static_cast<size_t>(row * width), static_cast<size_t>(width));
  }
};

/// What is known so far of one metric. Made of counts and of ExactSum (exact_sum.h): however rows are split
/// into batches and parts, and in whatever order those are added and merged, the result has the same bits.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual void update(const Judged& judged) = 0;
  /// Adds what another of the same kind has seen.
  virtual void merge(const Metric& other) = 0;
  /// Over all rows; NaN when there were none.
  virtual double finalize() const = 0;
};

/// `other`, which must be of this type.
template <typename Own>
const Own& same_metric(const Metric& other) {
  const auto* own = dynamic_cast<const Own*>(&other);
  if (!own) throw InternalError("metrics of two kinds cannot be merged");
  return *own;
}

/// One kind of metric.
struct MetricKind {
  /// Where its 95 % interval comes from: wilson, for shares of rows (E. B. Wilson, 1927); or jackknife, for
  /// all others: twenty groups of rows are left out in turn.
  enum Interval { wilson, jackknife };

  std::string name;
  std::string doc = {};
  /// Kinds of outputs that it applies to: "class" (one of several), "classes" (any of several), "number" (one
  /// or more), "tokens", "rank" (scores of rows that belong to queries).
  std::vector<std::string> outputs = {};
  bool higher_is_better = false;
  bool share = false;  // shown in percent
  /// The values that it can have: intervals end there.
  double lowest = -std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<double>::infinity();
  bool texts = false;  // judges generated texts (Judged::generated), not outputs
  Interval interval = jackknife;
  std::function<std::unique_ptr<Metric>()> init = nullptr;
  /// Of a mean over rows: what each row adds to it, as a graph. An output's first default metric that has
  /// this is shown while training runs. Given are, of classes and tokens, logits [batch, width] and the
  /// classes' numbers [batch] ([batch, length, width] and [batch, length] where there is a target at each
  /// place); of labels logits and 0 or 1, of numbers what is predicted and what is true in their own unit,
  /// f64, both [batch, width]; of rankings scores [batch, length, 1] and relevances [batch, length], -1 where
  /// a query has no row. The result is f32 [batch], or [batch, length].
  std::function<Tensor(const Tensor& outputs, const Tensor& targets)> of_rows = nullptr;
  /// Of a kind that is one of many, which differ by the whole number at the end of their names ("top-5"):
  /// makes the one of another number, from `least` to `most`.
  std::function<std::unique_ptr<Metric>(int64_t)> init_of = nullptr;
  int64_t least = 1, most = 1'000'000;
  /// Where it is not defined for all rows (finalize() is NaN): what it takes, to follow "it needs".
  std::string needs = {};
};

/// Adds a metric to those of the library: recipes name it in eval.metrics. InputError when its name is taken,
/// or `doc`, `init` or `outputs` are missing.
const MetricKind& register_metric(const MetricKind& kind);

/// A metric's result, with its 95 % interval: NaN where the rows are too few to tell.
struct Measured {
  std::string name;
  double value = 0, low = 0, high = 0;
};

/// Of one class, or label, among several.
struct ClassMeasured {
  int64_t count = 0, told = 0;  // rows of it, and rows told to be of it
  Measured precision, recall, f1;
};

/// softmax of one row.
void softmax(std::span<const float> logits, std::vector<double>& probabilities);
/// The log of one class's softmax, exact where the probability itself underflows.
double log_probability(std::span<const float> logits, int64_t label);
/// The first of the greatest.
int64_t most_probable(std::span<const float> logits);

}  // namespace millrace::eval
