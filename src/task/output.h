// Outputs of a task: what a model is to give. Each kind of output is one file in outputs/.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/array.h>
#include <millrace/metric.h>
#include <millrace/settings.h>
#include <millrace/tensor.h>

#include "base/registry.h"
#include "eval/calibration.h"
#include "task/loss.h"
#include "task/reading.h"

namespace millrace::data {
class Feed;
class Part;
}  // namespace millrace::data
namespace millrace::eval {
class Measurement;
}

namespace millrace::task {

struct OutputKind;
class Input;

/// Keys of a section, and what they are to be.
using SectionKeys = std::vector<std::pair<std::string, SettingValue>>;

/// A prediction for one sample, to be printed.
struct Prediction {
  std::string text;  // "cat 97.1 %, dog 2.2 %"
  /// Fields of a JSON object, each value as JSON text: {"class", "\"cat\""}, {"probabilities", "{…}"},
  /// {"logits", "[…]"}.
  std::vector<std::pair<std::string, std::string>> json;
};

class Output {
 public:
  explicit Output(Section section) : section_(std::move(section)) {}
  virtual ~Output() = default;

  const OutputKind& kind() const;
  const std::string& name() const { return section_.name; }
  const Settings& settings() const { return section_.settings; }
  const Section& section() const { return section_; }
  std::string prefix() const { return section_.name.empty() ? "" : section_.name + "."; }
  /// Its weight in the sum of the outputs' losses.
  double weight() const { return section_.settings.number("weight"); }

  /// What was learnt from the training data (classes, means), as JSON; load() reads it.
  virtual std::string encoding() const = 0;
  virtual std::vector<std::string> notes() const { return {}; }
  /// Loss of a model that knows nothing but how often what occurs (entropy, variance); NaN when that is not
  /// known.
  virtual double ignorance() const = 0;

  /// The last dimension of its logits: classes, numbers, tokens; and whether there are logits at each place
  /// of a row ([batch, length, width]), not only one for each row.
  virtual int64_t width() const = 0;
  virtual bool at_places() const { return false; }
  /// The input that the targets come from ("next tokens of text"); null where they are columns.
  virtual const Input* from() const { return nullptr; }
  /// The field of a feed that has its targets.
  std::string target_field() const;

  /// Its targets of the samples of a data set: a part with the field "target"; null where an input gives them
  /// (then that input's part has the fields "targets" and maybe "counted"). InputError when the data set
  /// lacks them, or has unknown classes.
  virtual std::shared_ptr<const data::Part> part(const Reading& reading) const = 0;
  /// The class of each sample for orders by class, and the classes; empty where there are none.
  virtual std::vector<int64_t> labels(const Reading& /*reading*/) const { return {}; }
  virtual std::vector<std::string> classes() const { return {}; }
  /// What kind each sample is of, where a part of them is to be like the whole: its class, or where its
  /// number lies among all; empty where nothing is known.
  virtual std::vector<int64_t> strata(const Reading& reading) const { return labels(reading); }

  /// Loss of each row (and place), or their mean: LossKind::make() on the targets as the field has them (-1
  /// taken for 0: `counted` weighs it 0).
  virtual Tensor loss(const Tensor& logits, const Tensor& targets, bool mean) const {
    return loss_(logits, targets, mean);
  }
  /// What is printed while training runs: the first of its default metrics that is a mean over rows
  /// (MetricKind::of_rows); and that of each row (and place), f32.
  const eval::MetricKind& progress_metric() const;
  Tensor progress(const Tensor& logits, const Tensor& targets) const;
  /// From numbers as the loss sees them to the unit of the metrics.
  virtual Tensor in_unit(const Tensor& numbers) const { return numbers; }
  /// From logits to predictions, as the exported model gives them behind its logits: probabilities, numbers
  /// in their unit.
  virtual Tensor predictions(const Tensor& logits) const = 0;
  virtual std::string predictions_name() const = 0;  // "probabilities"

  /// How logits become probabilities, where these can be calibrated.
  virtual eval::Link link() const { return eval::Link::none; }
  /// Logits that judge() and predict() get are calibrated already (calibrated.h); the thresholds are theirs.
  void calibrate(eval::Calibration calibration) {
    thresholds_ = calibration.logit_thresholds();
    calibration_ = std::move(calibration);
  }
  const eval::Calibration& calibration() const { return calibration_; }

  /// Adds rows of a batch to the metrics: logits f32 (rows × width, at_places() rows × length × width), the
  /// target array, or that of judged_part(), as the feed has it. `rows`: which rows count. `bytes` of text
  /// that a target stands for, or 0.
  virtual void judge(std::span<const float> logits, std::span<const std::byte> targets, int64_t length,
                     const std::vector<char>& rows, double bytes, eval::Measurement& into) const = 0;

  /// Why there is nothing to tell of a row; "" where there is.
  virtual std::string predicts_nothing() const { return {}; }
  /// How the prediction of one row is told; `top`: how many classes or tokens.
  virtual Prediction predict(std::span<const float> logits, int64_t top) const = 0;
  /// The same of a target, for `data show` and `data why`.
  virtual std::string target_text(std::span<const std::byte> target) const = 0;
  /// A row's prediction to stand beside its target_text(): of outputs at_places() for each place that has a
  /// target.
  virtual std::string predicted_text(std::span<const float> logits,
                                     std::span<const std::byte> /*target*/) const {
    return predict(logits, 1).text;
  }

  /// What judge() takes instead of the targets where they have lost digits: a part with the field "judged",
  /// which feeds of evaluation have, too. Null where the targets are exact.
  virtual std::shared_ptr<const data::Part> judged_part(const Reading& /*reading*/) const { return nullptr; }
  /// The field of a feed that has what judge() takes.
  std::string judged_field(const data::Feed& feed) const;

 protected:
  /// Of logits (Judged::thresholds); empty: 0.
  const std::vector<double>& thresholds() const { return thresholds_; }

  Section section_;
  ChosenLoss loss_;  // set by kinds without a loss() of their own

 private:
  eval::Calibration calibration_;
  std::vector<double> thresholds_;
};

/// A kind of output.
struct OutputKind {
  std::string name;  // "class"
  std::string doc;
  /// Does it say something of rows that belong together (data.group)?
  bool groups = false;
  /// Beside those that all have (common_output_settings(): weight, loss …).
  std::vector<Setting> settings;
  /// The setting that lists the classes that there are, as they must be known of a stream; "" for none.
  std::string listed = {};
  /// The setting of weights of targets by whose sum the loss of a batch is divided: what a sample counts
  /// depends on those beside it; "" for none.
  std::string batch_weights = {};
  std::vector<std::string>
      metrics;       // default ones; those that apply say so themselves (eval::MetricKind::outputs)
  std::string loss;  // default
  /// Could this column of a data set be its target? "" or why not.
  std::string (*refuses)(const data::Dataset& samples, const std::string& column) = nullptr;
  /// The column that it would take where the recipe names none; "" for none.
  std::string (*recognise)(const data::Dataset& samples) = nullptr;
  /// Where both are able to, the greater rank is the kind of a column.
  int rank = 0;
  /// What single keys show even before the kind is known, which may take long: InputError. May be null.
  void (*check_early)(const Section& section) = nullptr;
  void (*check)(const Section& section, const Recipe& recipe) = nullptr;
  /// `inputs` are known already; the section is settled.
  std::unique_ptr<Output> (*learn)(const Section& section, const Reading& reading,
                                   std::span<const std::unique_ptr<Input>> inputs) = nullptr;
  std::unique_ptr<Output> (*load)(const Section& section, const std::string& encoding,
                                  std::span<const std::unique_ptr<Input>> inputs) = nullptr;
  /// For `millrace init`, where no column is a target as it stands: sets keys of the section that make one of
  /// a column, and says why that is the target; "" where nothing does. May be null.
  std::string (*derive)(Section& section, const data::Dataset& samples) = nullptr;
  /// For `millrace init`: keys that make one of classes that are written in several ways, and of those of the
  /// tests (empty: there are none). May be null.
  SectionKeys (*draft)(const std::vector<std::string>& classes,
                       const std::vector<std::string>& of_tests) = nullptr;
};

#define MILLRACE_OUTPUT(name)                              \
  extern const ::millrace::task::OutputKind name##_output; \
  const ::millrace::task::OutputKind name##_output

Registry<OutputKind>& output_kinds();
/// Adds a kind of output to those of the library. InputError: also where none of its metrics is a mean over
/// rows, so that there is nothing to show while training runs.
const OutputKind& register_output(const OutputKind& kind);

/// The kinds that an output may be of: its own, or all while it is not known.
std::vector<const OutputKind*> possible_kinds(const Section& output);

/// The first of its default metrics that is a mean over rows; null where there is none, which
/// register_output() refuses.
const eval::MetricKind* progress_metric_of(const OutputKind& kind);

/// What every kind of output can be told: column, of (an input that targets come from), weight, loss (kind).
std::vector<Setting> common_output_settings();

}  // namespace millrace::task
