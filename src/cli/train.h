// Trainings as verbs begin them: one, or several of one recipe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/trainer.h"

namespace millrace::cli {

struct TrainArguments {
  std::string recipe, out, sample;
  std::vector<std::string> overrides;
  std::optional<int64_t> seeds = std::nullopt;  // more than one training
  bool resume = false, json = false, no_check = false;
};

struct Trained {
  std::filesystem::path run;
  train::Outcome outcome;
  std::vector<std::string> beside;  // the baselines, in words
};

/// A new run, or one that is gone on with, with what is shown meanwhile; Ctrl-C saves it.
Trained train_once(const TrainArguments& a);
/// Several trainings that differ in their seed alone, each a run in one folder: seed-1, seed-2 … Those that
/// are there are gone on with, or left as they are when they are finished. The exit code.
int train_seeds(const TrainArguments& a);

}  // namespace millrace::cli
