#include "train/averages.h"

#include <algorithm>

#include "optim/model_scope.h"
#include "task/model.h"
#include "trace/node.h"
#include "train/checkpoint.h"

namespace millrace::train {
namespace {

void exchange(Array a, Array b) {
  a.edit<float>([&](std::span<float> x) {
    b.edit<float>([&](std::span<float> y) { std::swap_ranges(x.begin(), x.end(), y.begin()); });
  });
}

void fill(Array array, double value) {
  array.edit<float>([&](std::span<float> to) { std::fill(to.begin(), to.end(), static_cast<float>(value)); });
}

}  // namespace

Exchanged::Exchanged(nn::Module& model, const Averaged& averages) {
  for (const nn::Named& named : optim::tensors_of(model))
    if (const auto found = averages.find(named.name); found != averages.end())
      pairs_.emplace_back(optim::value_of(named), found->second);
  for (const auto& [own, average] : pairs_) exchange(own, average);
}

Exchanged::~Exchanged() {
  for (const auto& [own, average] : pairs_) exchange(own, average);
}

WeightMean::WeightMean(nn::Module& model) : model_(model) {
  for (const nn::Named& named : optim::tensors_of(model))
    if (named.tensor->dtype() == f32) mean_.emplace(named.name, Array(named.tensor->type()));
}

void WeightMean::add() {
  ++count;
  const float part = 1 / static_cast<float>(count);
  for (const nn::Named& named : optim::tensors_of(model_)) {
    const auto found = mean_.find(named.name);
    if (found == mean_.end()) continue;
    const Array now = optim::value_of(named);
    const auto from = now.as<float>();
    // What does not change is not worn down by rounding.
    found->second.edit<float>([&](std::span<float> mean) {
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += (from[i] - mean[i]) * part;
    });
  }
}

Statistics::Statistics(task::Task& task, std::vector<data::Field> fields, std::set<std::string> moving,
                       uint64_t seed)
    : task_(task), fields_(std::move(fields)), moving_(std::move(moving)), seed_(seed) {}

std::vector<nn::Named> Statistics::buffers_of_model() {
  std::vector<nn::Named> found;
  for (const nn::Named& buffer : task_.network->buffers())
    if (moving_.contains(buffer.name)) found.push_back(buffer);
  return found;
}

void Statistics::prepare(int64_t length) {
  auto& step = steps_[length];
  if (step) return;
  std::vector<optim::TensorSpec> inputs = task::specs_of(fields_, task_.recipe.train.batch, length);
  inputs.push_back({"key", {i64, {2}}});
  const auto statistics = [function = task::step_function(task_, fields_), moving = moving_](
                              nn::Module& model, std::span<const Tensor> arrays) {
    model.train(true);
    {
      const trace::RandomScope random(arrays.back());
      (void)function(model, arrays.first(arrays.size() - 1));
    }
    model.train(false);
    std::vector<optim::NamedTensor> after;
    for (const nn::Named& buffer : model.buffers())
      if (moving.contains(buffer.name)) after.emplace_back(buffer.name, *buffer.tensor);
    return after;
  };
  step = std::make_unique<optim::EvalStep>(task_.network, inputs, statistics,
                                           task::compile_options(task_, task_.recipe.train.precision));
  // Compiled now, so that the choices it makes stand in every checkpoint.
  std::vector<Array> nothing;
  for (const optim::TensorSpec& input : inputs) nothing.emplace_back(input.type);
  run(*step, nothing);
}

std::vector<Array> Statistics::run(optim::EvalStep& step, std::span<const Array> arrays) {
  std::vector<Array> results = step.run(arrays);
  for (const auto& [name, choice] : step.program().choices()) task_.choices.emplace(name, choice);
  return results;
}

std::vector<std::vector<double>> Statistics::after(const data::Feed& feed, const data::FeedBatch& batch,
                                                   double start, int64_t number) {
  for (const nn::Named& buffer : buffers_of_model()) fill(optim::value_of(buffer), start);
  std::vector<Array> arrays;
  for (size_t i = 0; i < fields_.size(); ++i) arrays.push_back(feed.array(batch, static_cast<int>(i)));
  const std::vector<double> key = {static_cast<double>(seed_), static_cast<double>(number)};
  arrays.push_back(Array::of(i64, {2}, key));
  prepare(batch.length);
  std::vector<std::vector<double>> values;
  for (const Array& result : run(*steps_.at(batch.length), arrays)) values.push_back(result.to_doubles());
  return values;
}

// A running statistic is (1 − momentum) of what it was and momentum of the batch's; so from 0 it is momentum
// times the batch's, and what a far start leaves of itself tells the momentum.
std::vector<std::vector<double>> Statistics::means(data::Feed& feed, int64_t batches) {
  constexpr double far = 1 << 20;
  std::vector<std::vector<double>> sums;
  std::vector<double> momentum;
  for (int64_t number = 0; number < batches; ++number) {
    const data::FeedBatch& batch = feed.next();
    const auto values = after(feed, batch, 0, number);
    if (number == 0) {
      sums.resize(values.size());
      for (size_t k = 0; k < values.size(); ++k) sums[k].resize(values[k].size());
      const auto moved = after(feed, batch, far, number);
      for (size_t k = 0; k < values.size(); ++k)
        momentum.push_back(values[k].empty() ? 1 : 1 - (moved[k][0] - values[k][0]) / far);
    }
    for (size_t k = 0; k < values.size(); ++k)
      for (size_t i = 0; i < values[k].size(); ++i) sums[k][i] += values[k][i];
  }
  for (size_t k = 0; k < sums.size(); ++k)
    for (double& sum : sums[k]) sum /= static_cast<double>(batches) * momentum[k];
  return sums;
}

void Statistics::measure(data::Feed& feed, int64_t batches) {
  const data::Cursor back = feed.cursor();
  const std::vector<nn::Named> buffers = buffers_of_model();
  std::vector<Array> before;
  for (const nn::Named& buffer : buffers) before.push_back(optim::value_of(buffer).clone());
  std::vector<std::vector<double>> measured;
  try {
    measured = means(feed, batches);
  } catch (const Error&) {
    for (size_t k = 0; k < buffers.size(); ++k) optim::value_of(buffers[k]).assign(before[k]);
    feed.seek(back);
    throw;
  }
  feed.seek(back);
  for (size_t k = 0; k < buffers.size(); ++k) {
    Array array = optim::value_of(buffers[k]);
    array.edit<float>([&](std::span<float> to) {
      for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(measured[k][i]);
    });
  }
}

void use_averages(nn::Module& model, const Checkpoint& checkpoint) {
  for (const nn::Named& named : optim::tensors_of(model))
    for (const auto& [name, array] : checkpoint.tensors)
      if (name == kMovingAverage + named.name || name == kWeightMean + named.name)
        optim::value_of(named).assign(array);
}

}  // namespace millrace::train
