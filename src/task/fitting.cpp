#include "task/fitting.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "nn/models/architecture.h"
#include "task/loss_derivatives.h"
#include "task/model.h"

namespace millrace::task {
namespace {

/// What the architecture takes of batches: the inputs' graph() alone.
std::vector<optim::NamedTensor> fit_features(nn::Module& module, std::span<const Tensor> fields) {
  std::vector<optim::NamedTensor> named;
  for (Tensor& tensor : dynamic_cast<Network&>(module).features(fields, false))
    named.emplace_back(fmt::format("x{}", named.size()), std::move(tensor));
  return named;
}

Type with_rows(Type type, int64_t rows) {
  type.shape[0] = rows;
  return type;
}

/// Rows are added one by one; those that stand in for bad ones are left out.
class RowsOfFeed {
 public:
  RowsOfFeed(Task& task, TaskFeed& set)
      : task_(task),
        feed_(*set.feed),
        target_(feed_.field(task.outputs[0]->prefix() + "target")),
        step_(task.network, specs_of(task.fields(), 0, 0), fit_features, compile_options(task, "fp32")) {}

  nn::FitRows read(const std::function<void(int64_t, int64_t)>& progress) {
    data::Cursor start = feed_.cursor();
    start.epoch = start.position = 0;
    feed_.seek(start);
    const int64_t batches = feed_.batches_per_epoch();
    for (int64_t i = 0; i < batches; ++i) {
      const data::FeedBatch& batch = feed_.next();
      add(batch);
      if (progress) progress(i + 1, batches);
    }
    feed_.seek(start);
    for (Array& each : rows_.inputs) each = shortened(each);
    rows_.targets = shortened(rows_.targets);
    return std::move(rows_);
  }

 private:
  void add(const data::FeedBatch& batch) {
    std::vector<Array> arrays;
    for (const data::Field& field : task_.fields())
      arrays.push_back(feed_.array(batch, feed_.field(field.name)));
    std::vector<Array> given = step_.run(arrays);
    given.push_back(feed_.array(batch, target_));
    const bool weighted = feed_.has_field("weights");
    const Array weights = weighted ? feed_.array(batch, feed_.field("weights")) : Array();
    if (rows_.inputs.empty()) {
      const int64_t most = feed_.batches_per_epoch() * feed_.batch_size();
      for (const Array& each : given) rows_.inputs.emplace_back(with_rows(each.type(), most));
      rows_.targets = rows_.inputs.back();
      rows_.inputs.pop_back();
    }
    for (int64_t row = 0; row < batch.valid; ++row) {
      if (!batch.samples.empty() && !first_time(batch.samples[static_cast<size_t>(row)])) continue;
      for (size_t i = 0; i < given.size(); ++i)
        copy_row(given[i], row, i < rows_.inputs.size() ? rows_.inputs[i] : rows_.targets);
      if (weighted) rows_.weights.push_back(weights.as<float>()[static_cast<size_t>(row)]);
      ++rows_.count;
    }
  }
  void copy_row(const Array& from, int64_t row, Array& to) const {
    const auto bytes = static_cast<size_t>(from.bytes() / from.shape()[0].size());
    std::memcpy(static_cast<std::byte*>(to.data()) + static_cast<size_t>(rows_.count) * bytes,
                static_cast<const std::byte*>(from.data()) + static_cast<size_t>(row) * bytes, bytes);
  }
  bool first_time(int64_t sample) {
    const auto place = static_cast<size_t>(sample);
    if (place >= seen_.size()) seen_.resize(std::max(place + 1, 2 * seen_.size()));
    const bool first = !seen_[place];
    seen_[place] = true;
    return first;
  }
  Array shortened(const Array& all) const {
    Array some(with_rows(all.type(), rows_.count));
    std::memcpy(some.data(), all.data(), static_cast<size_t>(some.bytes()));
    return some;
  }

  Task& task_;
  data::Feed& feed_;
  size_t target_;
  optim::EvalStep step_;
  nn::FitRows rows_;
  std::vector<bool> seen_;
};

nn::Predicted predicted_of(const Output& output) {
  switch (output.link()) {
    case eval::Link::softmax:
      return nn::Predicted::classes;
    case eval::Link::sigmoid:
      return nn::Predicted::labels;
    case eval::Link::none:
      break;
  }
  return nn::Predicted::numbers;
}

}  // namespace

bool is_fitted(const Recipe& recipe) {
  const nn::Architecture* const kind = nn::architectures().find(recipe.model.kind);
  return kind && kind->fitted;
}

nn::Fitted* fitted_model(const Task& task) {
  return task.network ? dynamic_cast<nn::Fitted*>(task.network->model().module.get()) : nullptr;
}

void require_steps(const Recipe& recipe, const std::string& what) {
  if (is_fitted(recipe))
    fail<InputError>(
        "model.kind = \"{}\" is fitted to all samples at once, not by steps, so {} does not apply to it",
        recipe.model.kind, what);
}

std::string unused_keys(const Recipe& recipe) {
  const Recipe::Train usual, &now = recipe.train;
  std::vector<std::string> keys;
  const auto look = [&](const char* key, bool changed) {
    if (changed) keys.push_back(std::string("train.") + key);
  };
  look("epochs", now.epochs != usual.epochs);
  look("steps", now.steps != usual.steps);
  look("batch", now.batch != usual.batch);
  look("accumulate", now.accumulate != usual.accumulate);
  look("precision", now.precision != usual.precision);
  look("optimizer", !now.optimizer.items.empty());
  look("schedule", !now.schedule.items.empty());
  look("clip_norm", now.clip_norm != usual.clip_norm);
  look("clip_value", now.clip_value != usual.clip_value);
  look("freeze", now.freeze != usual.freeze);
  look("lookahead", now.lookahead != usual.lookahead);
  look("rates", now.rates != usual.rates);
  look("layer_decay", now.layer_decay != usual.layer_decay);
  look("ema", now.ema != usual.ema);
  look("swa", now.swa != usual.swa);
  look("init_from", now.init_from != usual.init_from);
  look("memory", now.memory != usual.memory);
  if (keys.empty()) return "";
  return fmt::format("{} is fitted to all samples at once, not by steps: {} {} not used", recipe.model.kind,
                     fmt::join(keys, ", "), keys.size() == 1 ? "is" : "are");
}

nn::FitData fit_data(Task& task, TaskFeed& training, TaskFeed& tests,
                     const std::function<void(int64_t, int64_t)>& progress) {
  const Output& output = *task.outputs[0];
  if (output.at_places() || output.from())
    fail<InputError>(
        "model.kind = \"{}\" tells one thing of each sample; {} is predicted at each place of a row",
        task.recipe.model.kind, output_key(output.section()));
  nn::FitData data;
  data.training = RowsOfFeed(task, training).read(progress);
  if (data.training.count == 0) fail<InputError>("{}: has no sample to learn from", training.feed->path());
  if (tests.feed) data.tests = RowsOfFeed(task, tests).read({});
  data.predicted = predicted_of(output);
  data.width = output.width();
  if (!is_usual_loss(output, data.training.targets))
    data.gradient = [derivatives = std::make_shared<LossDerivatives>(output, data.training.targets)](
                        const Array& logits) { return (*derivatives)(logits); };
  data.seed = static_cast<uint64_t>(task.recipe.train.seed);
  return data;
}

FitLoss::FitLoss(const Task& task, const nn::FitRows& rows)
    : output_(task.outputs[0].get()), targets_(rows.targets) {
  if (!rows.weights.empty()) {
    weights_ = Array(f32, {rows.count});
    std::copy(rows.weights.begin(), rows.weights.end(), weights_.as<float>().begin());
  }
  const Tensor symbol = Tensor::symbol("logits", {f32, {rows.count, output_->width()}});
  name_ = output_->progress(symbol, Tensor::symbol("targets", targets_.type())).first;
  function_ = std::make_shared<const CompiledFunction>(
      [output = output_, weighted = !rows.weights.empty()](std::span<const Tensor> x) {
        const Tensor loss =
            weighted ? (output->loss(x[0], x[1], false) * x[2]).mean() : output->loss(x[0], x[1], true);
        return std::vector<Tensor>{loss, output->progress(x[0], x[1]).second.mean()};
      });
}

std::pair<double, std::pair<std::string, double>> FitLoss::operator()(const Array& logits) const {
  std::vector<Tensor> inputs = {Tensor(logits), Tensor(targets_)};
  if (!weights_.empty()) inputs.emplace_back(weights_);
  const std::vector<Tensor> found = (*function_)(inputs);
  return {found[0].item(), {output_->prefix() + name_, found[1].item()}};
}

std::vector<eval::Measured> measure_logits(const Task& task, const nn::FitRows& rows, const Array& logits,
                                           bool intervals) {
  const Output& output = *task.outputs[0];
  eval::Measurement measurement(task.metrics(), output.section().kind,
                                intervals ? eval::Measurement::groups : 1);
  output.judge(
      std::as_const(logits).as<float>(),
      {static_cast<const std::byte*>(rows.targets.data()), static_cast<size_t>(rows.targets.bytes())}, 0,
      std::vector<char>(static_cast<size_t>(rows.count), 1), 0, measurement);
  return measurement.finalize();
}

}  // namespace millrace::task
