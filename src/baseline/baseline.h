// What a network has to beat: models of next to no effort on the same split, with the same metrics. Each is
// one file here with MILLRACE_BASELINE(name){…}.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <millrace/metric.h>
#include <millrace/recipe.h>

#include "base/registry.h"

namespace millrace::baseline {

class Context;

/// What a baseline reached; without metrics it does not apply, and `note` says why.
struct Result {
  std::string name = {};
  std::string note = {};
  std::vector<eval::Measured> metrics = {};
  /// What training prints beside the loss (Report::progress), on the rows that it learnt from; NaN: not
  /// known.
  double train = std::numeric_limits<double>::quiet_NaN();
  double seconds = 0;
};

struct BaselineKind {
  std::string name;
  std::string doc;  // what it predicts: a line
  int place = 0;
  Result (*run)(Context& context) = nullptr;
  bool same_for_all = false;  // what it says of one sample it says of all
};

#define MILLRACE_BASELINE(NAME)              \
  extern const BaselineKind baseline_##NAME; \
  const BaselineKind baseline_##NAME

Registry<BaselineKind>& baseline_kinds();

struct Options {
  std::vector<std::string> only = {};  // names; empty: all
  /// What is being done, and how far it is.
  std::function<void(const std::string&, int64_t, int64_t)> progress = [](const std::string&, int64_t,
                                                                          int64_t) {};
  std::function<bool()> stop = [] { return false; };
  /// What learns stops after so long.
  double seconds = 30;
};

/// Of the nearest neighbours of samples to train on (neighbours.h).
struct Neighbours {
  int64_t looked = 0;  // samples whose nearest neighbour was looked for
  int64_t near = 0;    // of them, those with one that is nearly the same
  /// How far their targets differ, and how far those of any two samples: shares of pairs of different
  /// classes, or mean squared differences of numbers. Of near duplicates where there are enough, else of
  /// nearest neighbours.
  double disagreement = 0, chance = 0;
  bool duplicates = false;
  /// 0: they agree; 1: they differ as any two do.
  double ratio() const { return chance > 0 ? disagreement / chance : 0; }
};

struct Report {
  /// Digests of the content of both sets (data/tools/fingerprint.h), and the metrics: what it is kept by.
  std::string train_digest, test_digest;
  std::string data;  // what was measured on
  int64_t rows = 0;
  std::vector<std::string> metrics;
  std::string progress;  // "accuracy"; "" where the rows of training were not looked at
  std::vector<Result> results;
  std::optional<Neighbours> neighbours;
};

/// InputError when the recipe has nothing to test on, or its data can be read but once.
Report measure(const task::Recipe& recipe, const Options& options);

/// Beside the recipe, "adult.baseline.json" of "adult.toml"; in a run folder "baseline.json".
std::filesystem::path report_path(const std::filesystem::path& recipe);
std::string report_json(const Report& report);
/// What report_json() wrote; nothing where there is no such file, or another version wrote it.
std::optional<Report> read_report(const std::filesystem::path& path);

/// The last "train/NAME" of a run's metrics.jsonl; NaN where there is none.
double last_of_training(const std::filesystem::path& metrics, const std::string& name);
/// A network beside them: its metrics on the test set, and what training printed beside the loss. Lines for
/// the user: what it loses to, or that it does not, and what the pattern says.
std::vector<std::string> compare(const Report& report, const std::vector<eval::Measured>& network,
                                 double train);
/// What a strong model far above a weak one says where near duplicates disagree; "" where nothing.
std::string pattern(const Report& report, const std::string& strong, double strong_train);

}  // namespace millrace::baseline
