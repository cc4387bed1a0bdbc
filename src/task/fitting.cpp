#include "task/fitting.h"

#include <algorithm>
#include <cstring>

#include <millrace/compile.h>

#include "base/format.h"
#include "eval/metric.h"
#include "nn/models/architecture.h"
#include "task/loss_derivatives.h"
#include "task/model.h"
#include "task/query_derivatives.h"

namespace millrace::task {
namespace {

/// What the architecture takes of batches: the inputs' graph() alone.
std::vector<optim::NamedTensor> fit_features(nn::Module& module, std::span<const Tensor> fields) {
  std::vector<optim::NamedTensor> named;
  for (Tensor& tensor : dynamic_cast<Network&>(module).features(fields, false))
    named.emplace_back(fmt::format("x{}", named.size()), std::move(tensor));
  return named;
}

nn::Predicted predicted_of(const Output& output) {
  if (output.kind().groups) return nn::Predicted::ranks;
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

/// Rows are added one by one; those that stand in for bad ones are left out. Of a query, which is one sample
/// of many rows, all that are there.
class RowsOfFeed {
 public:
  RowsOfFeed(Task& task, TaskFeed& set)
      : task_(task),
        feed_(*set.feed),
        queries_(predicted_of(*task.outputs[0]) == nn::Predicted::ranks),
        target_(feed_.field(task.outputs[0]->judged_field(feed_))),
        step_(task.network, specs_of(task.fields(), 0, 0), fit_features, compile_options(task, "fp32")) {}

  nn::FitRows read(const std::function<void(int64_t, int64_t)>& progress) {
    to_start(feed_);
    const int64_t batches = feed_.batches_per_epoch();
    for (int64_t i = 0; i < batches; ++i) {
      const data::FeedBatch& batch = feed_.next();
      add(batch);
      if (progress) progress(i + 1, batches);
    }
    to_start(feed_);
    for (Gathered& each : gathered_) rows_.inputs.push_back(array_of(each));
    if (!rows_.inputs.empty()) {
      rows_.targets = std::move(rows_.inputs.back());
      rows_.inputs.pop_back();
    }
    return std::move(rows_);
  }

 private:
  /// The rows of one array so far.
  struct Gathered {
    Type row;
    size_t row_bytes = 0;
    std::vector<std::byte> bytes = {};
  };

  void add(const data::FeedBatch& batch) {
    std::vector<Array> arrays;
    for (const data::Field& field : task_.fields())
      arrays.push_back(feed_.array(batch, feed_.field(field.name)));
    std::vector<Array> given = step_.run(arrays);
    given.push_back(feed_.array(batch, target_));
    const bool weighted = feed_.has_field("weights");
    const Array weights = weighted ? feed_.array(batch, feed_.field("weights")) : Array();
    if (gathered_.empty()) begin(given);
    const int64_t places = queries_ ? given.back().shape()[1].size() : 1;
    for (int64_t sample = 0; sample < batch.valid; ++sample) {
      if (!counted_.counts(batch, static_cast<size_t>(sample))) continue;
      const int64_t before = rows_.count;
      for (int64_t row = sample * places; row < (sample + 1) * places; ++row) {
        // Behind a query's last row relevances are -1.
        if (queries_ && !(std::as_const(given.back()).as<float>()[static_cast<size_t>(row)] >= 0)) continue;
        for (size_t i = 0; i < given.size(); ++i) copy_row(given[i], row, gathered_[i]);
        if (weighted) rows_.weights.push_back(weights.as<float>()[static_cast<size_t>(sample)]);
        ++rows_.count;
      }
      if (queries_ && rows_.count > before) rows_.queries.push_back(rows_.count - before);
    }
  }
  void begin(std::span<const Array> given) {
    for (const Array& each : given) {
      Type row = each.type();
      row.shape.erase(row.shape.begin(), row.shape.begin() + (queries_ ? 2 : 1));
      Gathered made{row, static_cast<size_t>(row.shape.count() * row.dtype.bytes())};
      if (!queries_)
        made.bytes.reserve(static_cast<size_t>(feed_.batches_per_epoch() * feed_.batch_size()) *
                           made.row_bytes);
      gathered_.push_back(std::move(made));
    }
  }
  static void copy_row(const Array& from, int64_t row, Gathered& to) {
    const auto* const begin =
        static_cast<const std::byte*>(from.data()) + static_cast<size_t>(row) * to.row_bytes;
    to.bytes.insert(to.bytes.end(), begin, begin + to.row_bytes);
  }
  Array array_of(Gathered& from) const {
    Type type = from.row;
    type.shape.insert(type.shape.begin(), Dim(rows_.count));
    Array all(type);
    std::memcpy(all.data(), from.bytes.data(), static_cast<size_t>(all.bytes()));
    from = {};
    return all;
  }

  Task& task_;
  data::Feed& feed_;
  bool queries_;
  size_t target_;
  optim::EvalStep step_;
  nn::FitRows rows_;
  std::vector<Gathered> gathered_;
  CountedRows counted_;
};

/// What a loss looks at.
nn::FitRows without_inputs(const nn::FitRows& rows) {
  return {{}, rows.targets, rows.weights, rows.count, rows.queries};
}

QueryDerivatives derivatives_of(const Output& output) {
  return {chosen_loss(output.section()), output_key(output.section())};
}

/// Measures logits of rows: of rankings query by query.
eval::Measurement measured(const Output& output, const nn::FitRows& rows, const Array& logits,
                           const std::vector<std::string>& metrics, int64_t groups) {
  eval::Measurement measurement(metrics, output.section().kind, groups);
  const auto all = logits.as<float>();
  const std::span<const std::byte> targets = {static_cast<const std::byte*>(rows.targets.data()),
                                              static_cast<size_t>(rows.targets.bytes())};
  if (rows.queries.empty())
    output.judge(all, targets, 0, std::vector<char>(static_cast<size_t>(rows.count), 1), 0, measurement);
  size_t begin = 0;
  for (const int64_t query : rows.queries) {
    const auto size = static_cast<size_t>(query);
    output.judge(all.subspan(begin, size), targets.subspan(begin * sizeof(float), size * sizeof(float)),
                 query, {1}, 0, measurement);
    begin += size;
  }
  return measurement;
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
  const bool ranks = predicted_of(output) == nn::Predicted::ranks;
  if ((output.at_places() && !ranks) || output.from())
    fail<InputError>(
        "model.kind = \"{}\" tells one thing of each sample; {} is predicted at each place of a row",
        task.recipe.model.kind, output_key(output.section()));
  nn::FitData data;
  data.training = RowsOfFeed(task, training).read(progress);
  if (data.training.count == 0) fail<InputError>("{}: has no sample to learn from", training.feed->path());
  if (tests.feed) data.tests = RowsOfFeed(task, tests).read({});
  data.predicted = predicted_of(output);
  data.width = output.width();
  if (ranks)
    data.gradient = [derivatives = derivatives_of(output),
                     rows = without_inputs(data.training)](const Array& logits) {
      QueryDerivatives::Found found = derivatives(rows.queries, logits, rows.targets);
      return std::pair(std::move(found.first), std::move(found.second));
    };
  else if (!is_usual_loss(output, data.training.targets))
    data.gradient = [derivatives = std::make_shared<LossDerivatives>(output, data.training.targets)](
                        const Array& logits) { return (*derivatives)(logits); };
  data.seed = static_cast<uint64_t>(task.recipe.train.seed);
  return data;
}

FitLoss::FitLoss(const Task& task, const nn::FitRows& rows)
    : output_(task.outputs[0].get()), rows_(without_inputs(rows)) {
  if (!rows.weights.empty()) {
    weights_ = Array(f32, {rows.count});
    std::copy(rows.weights.begin(), rows.weights.end(), weights_.as<float>().begin());
  }
  name_ = output_->progress_metric().name;
  if (!rows.queries.empty()) return;
  function_ = std::make_shared<const CompiledFunction>(
      [output = output_, weighted = !rows.weights.empty()](std::span<const Tensor> x) {
        const Tensor loss =
            weighted ? (output->loss(x[0], x[1], false) * x[2]).mean() : output->loss(x[0], x[1], true);
        return std::vector<Tensor>{loss, output->progress(x[0], x[1]).mean()};
      });
}

std::pair<double, std::pair<std::string, double>> FitLoss::operator()(const Array& logits) const {
  const std::string name = output_->prefix() + name_;
  if (!function_) {
    const double loss = derivatives_of(*output_)(rows_.queries, logits, rows_.targets).loss;
    return {loss, {name, measured(*output_, rows_, logits, {name_}, 1).finalize()[0].value}};
  }
  std::vector<Tensor> inputs = {Tensor(logits), Tensor(rows_.targets)};
  if (!weights_.empty()) inputs.emplace_back(weights_);
  const std::vector<Tensor> found = (*function_)(inputs);
  return {found[0].item(), {name, found[1].item()}};
}

std::vector<eval::Measured> measure_logits(const Task& task, const nn::FitRows& rows, const Array& logits,
                                           bool intervals) {
  return measured(*task.outputs[0], rows, logits, task.metrics(), intervals ? eval::Measurement::groups : 1)
      .finalize();
}

}  // namespace millrace::task
