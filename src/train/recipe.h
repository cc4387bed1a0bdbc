// The recipe of a training: what the user writes, checked and typed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace millrace::train {

/// Everything that decides a training. The defaults are those of keys that a recipe leaves out; recipe_keys() says what
/// each means. Strings keep their ${VARIABLES}; expand() them where they are used.
struct Recipe {
  struct Data {
    /// Where the training samples are: one source, or several by name, with the share of each in the mixture.
    std::string train;
    std::map<std::string, std::string> sources;  // data.train.NAME
    std::map<std::string, double> weights;       // data.weights.NAME
    bool stream = false;
    int64_t epoch_samples = 0;
    std::vector<std::string> classes;
    std::string test, where, order = "shuffle", sample_weight;
    std::vector<std::string> augment, mix;
    int64_t resize = 0, crop = 0, channels = 0;
    std::vector<double> mean, std;
    int64_t cache_mb = 2048;
    std::string memory;
    std::string tokenizer, text, label, sequences = "windows", separator = "\n", spans;
    int64_t length = 256;
    double test_share = 0;
    std::string samples = "pictures", header, label_pattern, label_trim, test_where, spec_augment;
    std::vector<std::string> categories, leave_out;
    int64_t rate = 16'000, mels = 64;
    double seconds = 1;
    double most_bad = 0.01;
  } data;

  struct Model {
    std::string kind;
    std::vector<std::string> layers;
    int64_t width = 128, depth = 4, heads = 4;
    double dropout = 0;
  } model;

  struct Optimizer {
    std::string kind = "sgd";
    double lr = 0.1, momentum = 0.9;
    bool nesterov = false;
    double weight_decay = 0;
    std::vector<double> betas = {0.9, 0.999};
    double eps = 1e-8;
    double norm_bias_lr = 1;
    bool decay_all = true;
  };
  struct Schedule {
    std::string kind = "constant";
    double warmup = 0, peak = 0.3, start = 0.2, end = 0;
    double every = 10, factor = 0.1;
  };
  struct Loss {
    std::string kind = "cross-entropy";
    double label_smoothing = 0;
  };

  struct Train {
    double epochs = 10;
    int64_t steps = 0, batch = 128, accumulate = 1;
    std::string precision = "fp32";
    Optimizer optimizer;
    Schedule schedule;
    double lr_scale = 1;
    Loss loss;
    double clip_norm = 0, clip_value = 0;
    std::vector<std::string> freeze;
    int64_t lookahead = 0;
    double lookahead_decay = 0.95;
    int64_t seed = 1;
    int64_t checkpoint_steps = 0;
    double checkpoint_minutes = 10;
    int64_t keep_checkpoints = 2;
    std::string memory;
    bool exact = false;
    int64_t verify = 0;
  } train;

  struct Eval {
    std::vector<std::string> metrics = {"accuracy", "log-loss"};
    int64_t batch = 500;
    std::string tta = "none";
  } eval;
};

/// Where a key's value lives.
using RecipeSlot =
    std::variant<bool*, int64_t*, double*, std::string*, std::vector<std::string>*, std::vector<double>*,
                 std::vector<int64_t>*, std::map<std::string, std::string>*, std::map<std::string, double>*>;

/// One key that a recipe may have.
struct RecipeKey {
  std::string name;  // "train.optimizer.lr"; "data.weights.NAME": any name, a table of the user's own
  std::string doc;
  RecipeSlot (*slot)(Recipe&);
  /// Bounds of numbers (each one, in lists).
  double low = 0, high = 1e18;
  /// The words a string may be; empty: any.
  std::vector<std::string> choices = {};
  /// The kinds (values of the "kind" beside it) that the key applies to; empty: all.
  std::vector<std::string> kinds = {};
};

/// The key that a dotted name means; null when there is none.
const RecipeKey* find_key(std::string_view name);

/// Every key, in the order in which recipes are written.
std::span<const RecipeKey> recipe_keys();

/// Reads a TOML recipe and applies overrides ("train.epochs=2", "train.optimizer=adam", "data.augment=[flip, rotate 10]").
/// An override of a whole table or of its kind by the table's name replaces the table. InputError names file, line and
/// column (or the override) of unknown keys, with the nearest valid one, of wrong types, ranges and words, and of
/// variables that are not set; IoError when the file cannot be read.
Recipe load_recipe(const std::filesystem::path& path, std::span<const std::string> overrides = {});
/// The same from text; `name` stands for the file in messages.
Recipe parse_recipe(std::string_view text, const std::string& name,
                    std::span<const std::string> overrides = {});

/// Checks what no single key can show (data and model are named, the loss fits …); InputError.
void check_recipe(const Recipe& recipe, const std::string& name);

/// The keys that only pictures have, and which of them are given: other samples refuse them, as nobody would read them.
std::vector<std::pair<const char*, bool>> picture_keys(const Recipe& recipe);

/// The part of it about data.train, its weights, and streams.
void check_sources(const Recipe& recipe, const std::string& name);

/// TOML with every key, which parse_recipe() reads back to the same recipe.
std::string recipe_toml(const Recipe& recipe);

/// All keys with defaults and meanings, as help text.
std::string recipe_help();

/// Replaces ${NAME} by the environment's value; MILLRACE_DATA has a default, ../shared/data. InputError when a variable is
/// not set.
std::string expand(std::string_view text);

}  // namespace millrace::train
