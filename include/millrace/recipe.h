// The recipe of a training: what the user writes, checked and typed. `millrace train --help` and
// docs/recipes.md list the keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/settings.h>

namespace millrace::data {
class Dataset;
}  // namespace millrace::data

namespace millrace::task {

/// Data sets of the program by the names that its recipes call them.
using DataSets = std::map<std::string, std::shared_ptr<const data::Dataset>>;

/// A section of a recipe that chooses a kind and tells it what it can be told: [input], [outputs.price],
/// train.optimizer … Of an output, items "loss" (or "loss.kind") and "loss.KEY" are those of its loss;
/// settle() leaves them alone.
struct Section {
  std::string name;   // of inputs and outputs; "" of the only one
  std::string kind;   // "" until it is known: the data say it
  Settings settings;  // of that kind; empty until it is known
  /// What was written, by key without the section's, and where ("recipe.toml:3:9"): what `settings` are made
  /// from.
  struct Item {
    SettingValue value;
    std::string where;
    std::string spelt = {};  // by an override, without quotes: 2024 is a text too, where one is wanted
  };
  std::map<std::string, Item> items;

  /// Makes `settings` of what the kind declares. InputError names the place and the key ("input.length"),
  /// with the nearest for an unknown one.
  void settle(const std::string& prefix, const std::string& kind_name, std::vector<Setting> declared);
  /// Sets one later, as if it had been written.
  void set(const std::string& key, SettingValue value);
};

/// Everything that decides a training. The defaults are those of keys that a recipe leaves out;
/// docs/recipes.md says what each means. Strings keep their ${VARIABLES}; they are read where they are used.
struct Recipe {
  /// Where samples come from, whatever they are.
  struct Data {
    /// One source, or several by name, with the share of each in the mixture.
    std::string base;  // relative paths begin there, where they exist there
    std::string train;
    std::map<std::string, std::string> sources;  // data.train.NAME
    std::map<std::string, double> weights;       // data.weights.NAME
    bool stream = false;
    int64_t epoch_samples = 0;
    std::string test, where, test_where, header, order = "shuffle", sample_weight;
    std::vector<std::string> missing;
    double test_share = 0;
    std::string test_by = "random";
    std::string sample;  // "2%" or "500" of what is trained on; empty: all
    std::string group;
    int64_t cache_mb = 2048;
    std::string memory;
    double most_bad = 0.01;
    /// What `train`, `sources` and `test` name by "set:NAME" instead of a path. No part of the recipe's text:
    /// who reads a run's recipe from its folder gives the same data sets again (Run::resume, Run::open).
    DataSets sets;
  } data;

  /// At least one each once the recipe is checked. Several have names, the only one has none.
  std::vector<Section> inputs = {{}}, outputs = {{}};

  struct Model : Section {
    std::vector<std::string> layers;
    /// Of several inputs: the network of each, by the input's name.
    std::map<std::string, Section> branches;
  } model;

  struct Train {
    double epochs = 10;
    int64_t steps = 0, batch = 128, accumulate = 1;  // a batch of 0: "auto"
    std::string precision = "fp32";
    Section optimizer, schedule;  // kinds "adamw" and "constant" unless another is written
    double lr_scale = 1;
    double clip_norm = 0, clip_value = 0;
    std::vector<std::string> freeze;
    int64_t lookahead = 0;
    double lookahead_decay = 0.95;
    std::vector<std::string> rates;
    double layer_decay = 1;
    double ema = 0, swa = 0;
    int64_t early_stopping = 0;
    int64_t seed = 1;
    std::string on_bad_step = "stop";
    double loss_spike = 0;
    int64_t most_bad_steps = 10, most_rollbacks = 3;
    double rollback_lr = 0.5;
    int64_t checkpoint_steps = 0;
    double checkpoint_minutes = 10;
    int64_t keep_checkpoints = 2;
    std::string keep_best, init_from;
    std::vector<std::string> init_names;
    int64_t lora = 0;
    double lora_alpha = 16;
    std::vector<std::string> lora_layers;
    std::vector<std::string> log;
    int64_t log_every = 0, histograms = 0, samples = 8;
    std::string memory;
    bool exact = false;
    int64_t verify = 0;
  } train;

  struct Eval {
    /// Of one output "accuracy", of several "price.mae"; empty: those that the outputs' kinds take by
    /// default.
    std::vector<std::string> metrics;
    int64_t batch = 500;
    int64_t generated = 32;
  } eval;

  /// What `millrace baseline` measures beside the models that it trains.
  struct Baseline {
    std::string heuristic, human;
  } baseline;
};

/// Reads a TOML recipe and applies overrides ("train.epochs=2", "train.optimizer=adam", "input.augment=[flip,
/// rotate 10]"). An override of a whole table or of its kind by the table's name replaces the table.
/// InputError names file, line and column (or the override) of unknown keys, with the nearest valid one, of
/// wrong types, ranges and words, and of variables that are not set; IoError when the file cannot be read.
/// Inputs, outputs and the model whose kind is not written keep their items until the data are looked at.
Recipe load_recipe(const std::filesystem::path& path, std::span<const std::string> overrides = {});
/// The same from text; `name` stands for the file in messages.
Recipe parse_recipe(std::string_view text, const std::string& name,
                    std::span<const std::string> overrides = {});

/// Checks what no single key can show; InputError.
void check_recipe(const Recipe& recipe, const std::string& name);

/// TOML with every key, which parse_recipe() reads back to the same recipe.
std::string recipe_toml(const Recipe& recipe);

}  // namespace millrace::task
