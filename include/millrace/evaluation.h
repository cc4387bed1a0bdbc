// What a run says of its model when it measures it, and when it calibrates it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/metric.h>

namespace millrace::task {

/// What is said of the classes, or labels, of an output with few of them.
struct ClassReport {
  std::string output;  // its name; "" of the only one
  std::vector<std::string> names;
  std::vector<eval::ClassMeasured> classes;
  /// The confusion matrix, [true class][told class]: rows. Empty of labels, which do not exclude each other.
  std::vector<int64_t> confusion;
};

struct Evaluation {
  /// Those of the recipe (eval.metrics), or the outputs' usual ones; of several outputs "NAME.METRIC".
  std::vector<eval::Measured> metrics;
  int64_t count = 0;  // rows (or places) that counted, of the first output
  double seconds = 0;
  std::string data, unit;            // what was measured on, and what is counted: "pictures", "targets"
  std::vector<ClassReport> classes;  // of outputs of at most 20 classes or labels
};

struct CalibrateOptions {
  /// "temperature": logits divided by one number; "isotonic": an ascending curve of probabilities, one for
  /// each class; "threshold": the probability from which on the second of two classes, or each label, is
  /// told.
  std::string method = "temperature";
  /// What a threshold is tuned for, "f1" where empty; of other methods another metric to be measured.
  std::string metric = {};
  std::string data = {};  // labelled samples to fit on; empty: the recipe's test set
};

/// What was fitted for an output.
struct Calibrated {
  std::string output;  // its name; "" of the only one
  std::string what;    // "temperature 1.832"
  int64_t count = 0;   // rows that it was fitted on
  /// Log loss, calibration error and the metric, on those rows: `after` says how well it fits, not how good
  /// the model is on others.
  std::vector<eval::Measured> before, after;
  std::vector<std::string> notes;  // what the user should know
};

}  // namespace millrace::task
