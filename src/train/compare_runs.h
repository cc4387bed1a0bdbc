// What differs between runs, and whether one is better than another.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/compare.h"
#include "train/status.h"

namespace millrace::train {

/// What is compared: a run, or the runs of a folder of seeds (`millrace train --seeds`).
struct Side {
  std::string name;  // as the user wrote it
  std::vector<std::filesystem::path> runs;
};
/// InputError when there is no run.
Side side_of(const std::filesystem::path& path);

/// Of a key or fact what each side has; "" where it has none.
struct KeyDifference {
  std::string key, first, second;
};
/// Keys of the recipes as the runs have them, with what was changed while they ran ("train.lr_scale, from
/// step 120"); the seed only where both sides have one run.
std::vector<KeyDifference> recipe_differences(const Side& first, const Side& second);
/// The data, the version and the machine, as far as the runs' origins tell.
std::vector<KeyDifference> origin_differences(const Side& first, const Side& second);

struct MetricDifference {
  std::string name;
  bool share = false, higher_is_better = false;
  eval::Difference rows;                 // of the means over each side's seeds
  std::optional<eval::Mcnemar> answers;  // of shares, where each side is one run
  std::optional<eval::SeedDifference> seeds;
};

/// The runs of a side measured on a set, row by row.
class MeasuredSide {
 public:
  /// On what the recipes test on, or on `data`. InputError when a run has no checkpoint or there is nothing
  /// to test on.
  MeasuredSide(const Side& side, const std::string& data, const Observer& observer);
  ~MeasuredSide();
  MeasuredSide(MeasuredSide&&) noexcept;

  int64_t rows() const;
  const std::string& data() const;

  /// Metrics that are done, and all.
  using Compared = std::function<void(int64_t done, int64_t all)>;
  /// Of the metrics that both report. InputError, with the reason, when they were not measured on the same
  /// rows, or have no metric in common.
  static std::vector<MetricDifference> compare(const MeasuredSide& first, const MeasuredSide& second,
                                               const Compared& compared = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Why a run may say little yet: it was stopped, or its loss still fell when it ended. Empty where nothing
/// speaks against it.
std::string unfinished(const std::filesystem::path& run);
/// Of each of these that may say little, a line that names it: who compares runs shows them.
std::vector<std::string> unfinished_runs(std::span<const std::filesystem::path> runs);

}  // namespace millrace::train
