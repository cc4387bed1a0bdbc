// What no single key of a recipe can show.
#include "task/recipe_check.h"

#include <algorithm>
#include <sstream>

#include "base/contains.h"
#include "base/format.h"
#include "base/size_text.h"
#include "base/suggest.h"
#include "eval/metric.h"
#include "optim/kinds.h"
#include "task/class_names.h"
#include "task/freeze_entry.h"
#include "task/input.h"
#include "task/output.h"
#include "task/recipe.h"
#include "task/recipe_sections.h"
#include "track/log_kind.h"
#include "track/weight_names.h"

namespace millrace::task {
namespace {

/// What goes through thousands of layers is not made for a hundred thousand: hours would go by before that
/// showed.
void check_depth(const std::vector<std::string>& layers, const std::string& key) {
  constexpr size_t most_layers = 2000;
  if (layers.size() > most_layers)
    fail<InputError>("{} has {} layers, and at most {} are built", key, layers.size(), most_layers);
}

void check_model(const Recipe& recipe) {
  const Recipe::Model& model = recipe.model;
  check_depth(model.layers, "model.layers");
  if (!model.kind.empty() && !model.layers.empty())
    fail<InputError>("give either model.kind or model.layers");
  if (recipe.inputs.size() > 1 && !model.layers.empty())
    fail<InputError>("model.layers are of one input, and there are {}: give each its own, as [model.{}]",
                     recipe.inputs.size(), recipe.inputs[0].name);
  if (recipe.inputs.size() > 1 && !model.kind.empty() && model.kind != "combine")
    fail<InputError>(
        "model.kind = \"{}\" takes one input, and there are {}: give each its own, as [model.{}], and leave "
        "model.kind out",
        model.kind, recipe.inputs.size(), recipe.inputs[0].name);
  for (const auto& [name, branch] : model.branches) {
    if (branch.settings.find("layers"))
      check_depth(branch.settings.texts("layers"), fmt::format("model.{}.layers", name));
    if (branch.items.contains("layers") && !branch.kind.empty())
      fail<InputError>("give either model.{}.kind or model.{}.layers", name, name);
  }
}

/// "mae" of the only output, "price.mae" of one of several; `key` says where it stands.
void check_metric(const Recipe& recipe, const std::string& name, const char* key) {
  const Section* output = recipe.outputs.data();
  std::string metric = name;
  if (recipe.outputs.size() > 1) {
    const size_t dot = name.find('.');
    std::vector<std::string> names;
    for (const Section& each : recipe.outputs) names.push_back(each.name);
    const std::string own = name.substr(0, dot);
    const auto found = std::find(names.begin(), names.end(), own);
    if (dot == std::string::npos || found == names.end())
      fail<InputError>("{}: '{}' is of none of the outputs ({}): write it as \"{}.{}\"", key, name,
                       fmt::join(names, ", "), dot == std::string::npos ? names[0] : nearest(own, names),
                       dot == std::string::npos ? name : name.substr(dot + 1));
    output = &recipe.outputs[static_cast<size_t>(found - names.begin())];
    metric = name.substr(dot + 1);
  }
  const std::vector<std::string> known = eval::metric_kinds().names();
  const eval::MetricKind* const kind = eval::find_metric(metric);
  if (!kind)
    fail<InputError>("{}: there is no metric '{}'{} ({})", key, metric, did_you_mean(metric, known),
                     fmt::join(known, ", "));
  if (output->kind.empty() || contains(kind->outputs, output->kind)) return;
  const std::vector<std::string> kinds = {output->kind};
  fail<InputError>("{}: '{}' does not apply to {}, of kind {}, but {}", key, name, output_key(*output),
                   output->kind, fmt::join(eval::metrics_for(kinds), ", "));
}

/// A metric that training goes by, of those that the test after each epoch reports. `key`: what names it.
void check_tested(const Recipe& recipe, const std::string& metric, const char* key) {
  const Recipe::Data& data = recipe.data;
  check_metric(recipe, metric, key);
  if (data.test.empty() && data.test_where.empty() && data.test_share == 0)
    fail<InputError>(
        "{} = \"{}\" is measured on a test set, and the recipe names none: set data.test or data.test_share",
        key, metric);
  const std::vector<std::string>& metrics = recipe.eval.metrics;
  if (!metrics.empty() && !contains(metrics, metric))
    fail<InputError>("{} = \"{}\" is none of eval.metrics ({}): add it there", key, metric,
                     fmt::join(metrics, ", "));
}

/// `check` throws what follows the key.
void check_named(const std::string& key, const std::string& text, void (*check)(const std::string&)) {
  try {
    check(text);
  } catch (const InputError& error) {
    fail<InputError>("{}: {}", key, error.what());
  }
}

void check_measured(const Recipe& recipe) {
  const Recipe::Train& train = recipe.train;
  if (!train.keep_best.empty()) check_tested(recipe, train.keep_best, "train.keep_best");
  if (train.early_stopping > 0 && train.keep_best.empty())
    fail<InputError>(
        "train.early_stopping = {} goes by the metric of train.keep_best, which is not set: name one, as "
        "train.keep_best = \"{}\"",
        train.early_stopping, recipe.eval.metrics.empty() ? "log-loss" : recipe.eval.metrics[0]);
  const Settings& schedule = train.schedule.settings;
  if (schedule.find("metric") && !schedule.text("metric").empty())
    check_tested(recipe, schedule.text("metric"), "train.schedule.metric");
}

void check_sections(const Recipe& recipe) {
  if (recipe.inputs.empty() || recipe.outputs.empty())
    fail<InternalError>("a recipe without inputs or outputs");
  for (const Section& input : recipe.inputs) {
    if (input.kind.empty()) continue;
    if (const InputKind& kind = input_kinds().at(input.kind); kind.check) kind.check(input, recipe);
  }
  for (const Section& output : recipe.outputs) {
    for (const OutputKind* kind : possible_kinds(output))
      if (kind->check_early) kind->check_early(output);
    if (output.kind.empty()) continue;
    const OutputKind& kind = output_kinds().at(output.kind);
    (void)chosen_loss(output);
    if (kind.check) kind.check(output, recipe);
  }
  if (std::all_of(recipe.outputs.begin(), recipe.outputs.end(), [](const Section& output) {
        return output.settings.find("weight") && output.settings.number("weight") == 0;
      }))
    fail<InputError>("{}.weight = 0: {}, so that nothing would be learnt; give {} a weight above 0",
                     output_key(recipe.outputs[0]),
                     recipe.outputs.size() > 1 ? "all outputs weigh nothing" : "it is the only output",
                     recipe.outputs.size() > 1 ? "one of them" : "it");
}

/// Averages of weights.
void check_averages(const Recipe::Train& train) {
  std::vector<std::string> given;
  if (train.ema > 0) given.emplace_back("train.ema");
  if (train.swa > 0) given.emplace_back("train.swa");
  if (train.lookahead > 0) given.emplace_back("train.lookahead");
  if (given.size() > 1)
    fail<InputError>("{} and {} both average the weights: give one of them", given[0], given[1]);
  if (!given.empty() && train.precision == "bf16-pure")
    fail<InputError>(
        "{} averages f32 weights, which train.precision = \"bf16-pure\" does not keep: use \"bf16\", or no "
        "{}",
        given[0], given[0].substr(given[0].find('.') + 1));
}

/// What an optimiser that goes by the loss of all samples leaves no room for.
void check_whole(const Recipe& recipe) {
  const Recipe::Train& train = recipe.train;
  if (train.optimizer.kind.empty() || !optim::optimizer_kinds().at(train.optimizer.kind).whole) return;
  const auto refuse = [&](bool given, const std::string& key, const char* why) {
    if (given)
      fail<InputError>("{} does not go with train.optimizer = \"{}\", {}: leave it out", key,
                       train.optimizer.kind, why);
  };
  constexpr const char *lengths = "which searches for the length of its steps",
                       *losses = "which compares losses of all samples",
                       *itself = "which by itself comes back from where the loss is large or not finite";
  refuse(recipe.data.stream, "data.stream", "which goes over the same samples again and again");
  refuse(!recipe.data.weights.empty(), "data.weights", "for which each sample counts once");
  refuse(train.steps > 0, "train.steps", "whose passes train.epochs limits");
  refuse(train.precision != "fp32", "train.precision", "which needs all digits of the loss");
  refuse(!train.schedule.kind.empty() && train.schedule.kind != "constant", "train.schedule", lengths);
  refuse(train.clip_norm > 0, "train.clip_norm", lengths);
  refuse(train.clip_value > 0, "train.clip_value", lengths);
  refuse(!train.rates.empty(), "train.rates", lengths);
  refuse(train.layer_decay != 1, "train.layer_decay", lengths);
  refuse(!train.freeze.empty(), "train.freeze", losses);
  refuse(train.lookahead > 0, "train.lookahead", losses);
  refuse(train.ema > 0, "train.ema", losses);
  refuse(train.swa > 0, "train.swa", losses);
  refuse(train.on_bad_step != "stop", "train.on_bad_step", itself);
  refuse(train.loss_spike > 0, "train.loss_spike", itself);
  refuse(train.batch == 0, "train.batch = \"auto\"",
         "for which batches only say how many samples are looked at at a time");
  for (const Section& output : recipe.outputs)
    for (const OutputKind* kind : possible_kinds(output))
      if (const std::string& key = kind->batch_weights; !key.empty())
        refuse(!texts_of(output, key).empty(), output_key(output) + "." + key,
               "as these are divided by the weights of each batch (data.sample_weight weighs samples)");
}

void check_training(const Recipe& recipe) {
  const Recipe::Train& train = recipe.train;
  check_whole(recipe);
  if (!train.optimizer.kind.empty()) {
    const optim::OptimizerKind& kind = optim::optimizer_kinds().at(train.optimizer.kind);
    try {
      (void)kind.make(train.optimizer.settings, {});
    } catch (const InputError& error) {
      fail<InputError>("train.optimizer: {}", error.what());
    }
  }
  if (train.steps == 0 && train.epochs <= 0)
    fail<InputError>("train.epochs must be more than 0 (or give train.steps)");
  if (train.batch == 0 && train.accumulate > 1)
    fail<InputError>(
        "train.batch = \"auto\" looks for a batch that fits the memory whole, which leaves nothing for "
        "train.accumulate = {}: give one of them",
        train.accumulate);
  if (train.batch == 0 && recipe.data.stream)
    fail<InputError>(
        "train.batch = \"auto\" tries batches on the data, which a stream gives once: say how large it is");
  if (train.batch % train.accumulate != 0)
    fail<InputError>("train.batch = {} cannot be divided into train.accumulate = {} equal parts", train.batch,
                     train.accumulate);
  if (!recipe.data.memory.empty()) (void)parse_bytes("data.memory", recipe.data.memory);
  if (!train.memory.empty()) (void)parse_bytes("train.memory", train.memory);
  for (const std::string& entry : train.freeze) (void)parse_freeze(entry);
  for (const std::string& entry : train.rates) (void)parse_rate(entry);
  for (const std::string& rule : train.init_names)
    check_named("train.init_names", rule,
                [](const std::string& text) { (void)track::parse_name_rule(text); });
  if (!train.init_names.empty() && train.init_from.empty())
    fail<InputError>("train.init_names are names of a file of weights, and train.init_from names none");
  if (!train.lora_layers.empty() && train.lora == 0)
    fail<InputError>(
        "train.lora_layers says which layers get adapters, and train.lora not of which rank: 8?");
  check_averages(train);
}

}  // namespace

std::pair<std::string, double> parse_freeze(const std::string& entry) {
  std::istringstream words(entry);
  std::string name, rest;
  double epochs = 0;
  if (!(words >> name >> epochs) || words >> rest || !(epochs >= 0) || epochs > 1e9)
    fail<InputError>(
        "train.freeze: '{}' is not a parameter or layer and the epochs that it trains for, such as "
        "'white.bias 3'",
        entry);
  return {name, epochs};
}

std::pair<std::string, double> parse_rate(const std::string& entry) {
  std::istringstream words(entry);
  std::string name, rest;
  double factor = 0;
  if (!(words >> name >> factor) || words >> rest || !(factor > 0) || factor > 1e6)
    fail<InputError>(
        "train.rates: '{}' is not a pattern of names and the factor of their rate, above 0, such as "
        "'encoder.* 0.1' (train.freeze stops what is not to train)",
        entry);
  return {name, factor};
}

namespace {

/// Messages get the recipe's name in front, unless they know their place in it.
template <typename Check>
void named_check(const std::string& name, Check check) {
  try {
    check();
  } catch (const InputError& error) {
    const std::string message = error.what();
    if (message.starts_with(name + ":") || message.starts_with("'")) throw;
    fail<InputError>("{}: {}", name, message);
  }
}

}  // namespace

void check_kinds(const Recipe& recipe, const std::string& name) {
  named_check(name, [&] {
    check_model(recipe);
    check_sections(recipe);
    require_different(recipe.eval.metrics, "eval.metrics");
    for (const std::string& metric : recipe.eval.metrics) check_metric(recipe, metric, "eval.metrics");
    check_measured(recipe);
    for (const std::string& log : recipe.train.log) check_named("train.log", log, track::check_log);
  });
}

void check_recipe(const Recipe& recipe, const std::string& name) {
  named_check(name, [&] { check_sources(recipe); });
  check_kinds(recipe, name);
  named_check(name, [&] { check_training(recipe); });
}

}  // namespace millrace::task
